/**
 * Guarantees: a running run that nobody is heard of in time is an unknown outcome, and goes the way of one; whoever is heard of meanwhile goes on.
 * Transaction: one for what a pass found; what others have locked is left to the next pass.
 * If the process dies here: it is done or not; any instance finds the same rows.
 */
import type { RunExpired } from '../core/events.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import { NO_DEFINITION } from '../core/no-definition.ts';
import type { AttemptError } from '../core/outcome.ts';
import type { Handoff } from '../core/schedule.ts';
import { type Attempted, type Settlement, settlementOf } from '../core/settlement.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import { createPatience } from '../runtime/patience.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Database } from '../store/database.ts';
import { databaseNow } from '../store/database-now.ts';
import { isDataRefused, isUnavailable } from '../store/errors.ts';
import {
  type Expiry,
  type Hearing,
  type SilentRun,
  expireIfStillSilent,
  findSilent,
} from '../store/expiries.ts';
import { type Aftermath, NO_AFTERMATH, together } from '../store/followers.ts';
import { loadHandoffs, versionKey } from '../store/handoffs.ts';
import type { OpenSpan } from '../store/open-runs.ts';
import type { TargetRegistry } from '../targets/registry.ts';

export interface ExpiryDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  targets: TargetRegistry;
  openSpan: OpenSpan;
  /** Sees to what ends brought about, and to what can be claimed again. */
  followUp: (aftermath: Aftermath) => void;
  /**
   * Before this instance worked, and while the database was away, nobody may have been heard of: so long, at most, a run then gets to
   * be heard of again.
   */
  graceSeconds?: number;
}

const BATCH = 500;
const INTERVAL_MS = 1_000;
const MOST_WAITED_FOR = 3;

export function createExpiry(deps: ExpiryDeps): Loop {
  const { database, clock, events, openSpan, graceSeconds = 20 } = deps;
  const patience = createPatience();
  let hearing: Hearing | null = null;

  async function pass(): Promise<number> {
    try {
      hearing ??= { since: await database.run(databaseNow), graceSeconds };
      const { found, expired } = await expireSilent(hearing);
      events.emit({ type: 'expiriesChecked' });
      return found === BATCH && expired > 0 ? 0 : INTERVAL_MS;
    } catch (error) {
      if (isUnavailable(error)) hearing = null;
      throw error;
    }
  }

  async function expireSilent(hearing: Hearing): Promise<{ found: number; expired: number }> {
    const { runs, now } = await database.run((db) => findSilent(db, openSpan.since(), hearing, BATCH));
    if (runs.length === 0) return { found: 0, expired: 0 };
    const handoffs = await database.run((db) => loadHandoffs(db, runs));
    const expiries = runs.map((run): Expiry => {
      const attempted = attemptedOf(deps.targets, run, handoffs.get(versionKey(run)));
      const outcome = { kind: 'unknown', error: silenceOf(run), senderStopped: false } as const;
      return { run, settlement: settlementOf(outcome, attempted, now, Math.random()) };
    });
    const ids = await expire(expiries, now);
    // What others have locked at every look is waited for, one at a time.
    const over = patience.over(
      runs.map(({ id }) => id),
      ids,
    );
    for (const expiry of expiries.filter(({ run }) => over.has(run.id)).slice(0, MOST_WAITED_FOR))
      await expire([expiry], now, { wait: true });
    return { found: runs.length, expired: ids.size };
  }

  /** Answers the ids of those that are settled now. */
  async function expire(
    expiries: readonly Expiry[],
    now: Instant,
    how: { wait?: boolean } = {},
  ): Promise<ReadonlySet<string>> {
    try {
      const { ids, aftermath } = await database.transaction((tx) => expireIfStillSilent(tx, expiries, how));
      const expired = expiries.filter(({ run }) => ids.has(run.id));
      if (expired.length > 0)
        events.emit({ type: 'runsExpired', runs: expired.map((one) => told(one, now)) });
      deps.followUp(together([aftermath, toBeTriedAgain(expired)]));
      return ids;
    } catch (error) {
      if (!isDataRefused(error)) throw error;
      return expireApart(expiries, now, error);
    }
  }

  /** A row that cannot be written must not hold up the others: halve until it stands alone. */
  async function expireApart(
    expiries: readonly Expiry[],
    now: Instant,
    error: unknown,
  ): Promise<ReadonlySet<string>> {
    const [only, ...others] = expiries;
    if (!only) return new Set();
    if (others.length === 0) {
      events.emit({ type: 'expiryRefused', runId: only.run.id, error: reasonOf(error) });
      return new Set();
    }
    const half = Math.ceil(expiries.length / 2);
    const first = await expire(expiries.slice(0, half), now);
    return new Set([...first, ...(await expire(expiries.slice(half), now))]);
  }

  return createLoop({ name: 'expiry', clock, body: pass, events });
}

/** At least once, where the definition is not there to say otherwise. */
function attemptedOf(targets: TargetRegistry, run: SilentRun, handoff: Handoff | undefined): Attempted {
  const { failures, startedAt } = run;
  const { retry, delivery, timeoutSeconds, completion, completionTimeoutSeconds } = handoff ?? NO_DEFINITION;
  const hasLookup = (handoff && targets.kindOf(handoff.target)?.hasLookup(handoff.target)) ?? false;
  const said = { retry, delivery, timeoutSeconds, completion, completionTimeoutSeconds };
  return { ...said, failures, startedAt, hasLookup, doubt: null, wasHandedOff: true };
}

function silenceOf({ workerId, expiresAt }: SilentRun): AttemptError {
  const by = isoInstant(expiresAt);
  const message =
    workerId === null
      ? `no completion or heartbeat came by ${by}`
      : `the lease of worker ${workerId} ran out at ${by}: no completion or heartbeat came`;
  return { kind: 'expired', message };
}

function toBeTriedAgain(expired: readonly Expiry[]): Aftermath {
  const again = expired.filter(({ settlement }) => settlement.status === 'pending');
  return {
    ...NO_AFTERMATH,
    toClaim: again.length,
    toPull: again.some(({ run }) => run.queue !== null),
  };
}

function told({ run, settlement }: Expiry, now: Instant): RunExpired {
  const { id: runId, scheduleId, attempt, workerId, firstClaimedAt } = run;
  const { status, error, retryAt, doubt }: Settlement = settlement;
  const ended = status !== 'pending';
  return {
    runId,
    scheduleId,
    attempt,
    workerId,
    settlement: {
      status,
      error: error?.message ?? null,
      durationMs: ended && firstClaimedAt !== null ? now - firstClaimedAt : null,
      retryAt,
      recovered: false,
      inDoubt: !ended && doubt !== null,
    },
  };
}
