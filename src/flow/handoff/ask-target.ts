/**
 * Guarantees: a target is asked about an uncertain attempt before its run is sent again, and what it says is settled or sent anew.
 * Transaction: none; what was asked is settled with the attempt.
 * If the process dies here: the attempt stays uncertain; the instance that claims the run next asks again.
 */
import type { Instant } from '../../core/instant.ts';
import type { LookedUp } from '../../core/runs/attempts/attempt.ts';
import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { Attempted, UncertainDelivery } from '../../core/runs/attempts/settlement.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import type { Attempt, TargetKind } from '../../targets/target.ts';
import { resolveUncertain } from './lookup.ts';
import { attemptedOf, settled, settlementFor } from './settlements.ts';
import type { SendableHandoff } from './handoff-definitions.ts';

export interface AskTargetDeps {
  databaseClock: DatabaseClock;
  events: EventBus;
  /** How often a target is asked about an uncertain attempt. */
  maxRecoveries: number;
}

export interface Sending {
  kind: TargetKind;
  run: ClaimedRun;
  handoff: SendableHandoff;
  attempt: Attempt;
  signal: AbortSignal;
}

type Asked = { settled: AttemptSettlement } | { lookup: LookedUp | null };

export async function askIfUncertain(
  deps: AskTargetDeps,
  sending: Sending,
  startedAt: Instant,
): Promise<Asked | null> {
  const attempted = attemptedOf(sending.run, sending.handoff, sending.kind, startedAt);
  const { uncertain } = attempted;
  return uncertain && askTarget(deps, sending, { ...attempted, uncertain });
}

/** The settlement that the target's answer leads to; without `settled` the run is sent again. */
async function askTarget(
  { databaseClock, events, maxRecoveries }: AskTargetDeps,
  { kind, run, handoff, attempt, signal }: Sending,
  attempted: Attempted & { uncertain: UncertainDelivery },
): Promise<Asked> {
  const ask = () => kind.lookup(handoff.target, attempt, signal);
  const isStopped = () => signal.aborted || !attempt.mayStart();
  const { claimedAt } = run;
  const resolved = await resolveUncertain(ask, attempted, {
    databaseClock,
    maxRecoveries,
    claimedAt,
    isStopped,
  });
  const { lookup } = resolved;
  if (lookup) {
    const { id: runId, scheduleId } = run;
    events.emit({ type: 'targetAsked', runId, scheduleId, attempt: run.attempt, lookup });
  }
  if (resolved.kind === 'send') return { lookup };
  const settlement =
    resolved.kind === 'settled'
      ? settled(databaseClock, run, attempted.startedAt, resolved)
      : settlementFor(databaseClock, run, attempted, resolved.outcome);
  return { settled: { ...settlement, lookup } };
}
