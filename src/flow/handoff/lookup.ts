/**
 * Guarantees: an attempt that may have arrived is asked about before it is repeated or given up.
 * Transaction: none; the answer is settled as an outcome is.
 * If the process dies here: the run is still pending and uncertain; the instance that claims it next asks again.
 */
import type { AttemptOutcome, LookedUp } from '../../core/runs/attempts/attempt.ts';
import { afterLookup } from '../../core/runs/attempts/uncertain-delivery.ts';
import type { Instant } from '../../core/instant.ts';
import { type Outcome, notSent } from '../../core/runs/attempts/outcome.ts';
import type { Attempted, UncertainDelivery, Settlement } from '../../core/runs/attempts/settlement.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { LookupAnswer } from '../../targets/target.ts';

interface LookupDeps {
  databaseClock: DatabaseClock;
  maxRecoveries: number;
  /** When the run was claimed: by the database, and before its target is asked. */
  claimedAt: Instant;
  /** The daemon stops, or its lease has run out: then a missing answer says nothing about the target. */
  isStopped: () => boolean;
}

type Resolved = (
  | /** It did not arrive, or at least once does not mind: another attempt. */ { kind: 'send' }
    /** It arrived, or was not asked about: an outcome like any other. */
  | { kind: 'ended'; outcome: Outcome }
  | { kind: 'settled'; outcome: AttemptOutcome; settlement: Settlement }
) & { lookup: LookedUp | null };

export async function resolveUncertain(
  askTarget: () => Promise<LookupAnswer>,
  attempted: Attempted & { uncertain: UncertainDelivery },
  { databaseClock, maxRecoveries, claimedAt, isStopped }: LookupDeps,
): Promise<Resolved> {
  const answer = await ask(askTarget);
  const lookup = answer.kind;
  if (lookup === 'arrived') return { kind: 'ended', outcome: { ...answer, kind: 'accepted' }, lookup };
  if (lookup === 'unclear' && isStopped()) return { kind: 'ended', outcome: stopped(), lookup: null };
  const settlement = afterLookup(answer, attempted, {
    maxLookups: maxRecoveries,
    askedAt: claimedAt,
    now: databaseClock.now(),
    random: Math.random(),
  });
  if (settlement === 'send') return { kind: 'send', lookup };
  const isOpen = lookup === 'unclear' || settlement.uncertain !== null;
  return { kind: 'settled', outcome: isOpen ? 'unknown' : 'rejected', settlement, lookup };
}

async function ask(lookup: () => Promise<LookupAnswer>): Promise<LookupAnswer> {
  try {
    return await lookup();
  } catch (error) {
    return { kind: 'unclear', error: { kind: 'network', message: reasonOf(error) } };
  }
}

/** The next caller asks anew, and this answer does not count. */
function stopped(): Outcome {
  return notSent({ kind: 'network', message: 'stopped before the target had answered' }, true);
}
