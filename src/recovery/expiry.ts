/**
 * Guarantees: a running run without a heartbeat or an end in time has an unknown outcome, and is treated as such; one
 *   that sends a heartbeat meanwhile goes on.
 * Transaction: one for what a pass found; what others have locked is left to the next pass.
 * If the process dies here: it is done or not; any instance finds the same rows.
 */
import type { RunExpired } from '../core/events.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { AttemptError } from '../core/runs/attempts/outcome.ts';
import { type Handoff, NO_DEFINITION } from '../core/schedules/schedule.ts';
import { type Attempted, type Settlement, settlementOf } from '../core/runs/attempts/settlement.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Rests, type StarvationGuard, createRests, createStarvationGuard } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import { batchFaultOf, isUnavailable } from '../postgres/errors.ts';
import { seeTo } from '../postgres/see-to.ts';
import { loadHandoffs, versionKey } from '../store/schedules/schedule-versions.ts';
import {
  type Expiry,
  type ListeningSince,
  type SilentRun,
  expireIfStillSilent,
  findSilent,
} from '../store/runs/claims/expiries.ts';
import type { MeetingLocks } from '../store/runs/lock-and-save.ts';
import type { TargetRegistry } from '../targets/target.ts';

export interface ExpiryDeps extends LoopDeps {
  targets: TargetRegistry;
  wake: Wake;
  /**
   * Before this instance worked, and while the database was away, no worker or target could report. After that, a run gets at most
   * this long to report again.
   */
  graceSeconds?: number;
}

const BATCH = 500;
const INTERVAL_MS = 1_000;
const MAX_WAITED_FOR = 3;
const GRACE_SECONDS = 20;

interface State extends ExpiryDeps {
  guard: StarvationGuard;
  /** Runs whose row was refused. */
  rests: Rests;
  /** Null: the database was away, or this instance has just started; workers and targets could not report. */
  listening: ListeningSince | null;
}

export function createExpiry(deps: ExpiryDeps): Loop {
  const { clock, events } = deps;
  const state: State = {
    ...deps,
    guard: createStarvationGuard(),
    rests: createRests({ clock, events, loop: 'expiry' }),
    listening: null,
  };
  return createLoop({ name: 'expiry', clock, body: () => pass(state), events });
}

async function pass(state: State): Promise<number> {
  const { database, graceSeconds = GRACE_SECONDS } = state;
  try {
    state.listening ??= { since: await database.run(databaseNow), graceSeconds };
    const { found, expired } = await expireSilent(state, state.listening);
    return found === BATCH && expired > 0 ? 0 : INTERVAL_MS;
  } catch (error) {
    if (isUnavailable(error) && batchFaultOf(error) === null) state.listening = null;
    throw error;
  }
}

async function expireSilent(state: State, listening: ListeningSince): Promise<{ found: number; expired: number }> {
  const { database, targets, guard, rests } = state;
  const { runs, now } = await database.run((db) => findSilent(db, listening, { limit: BATCH, besides: rests.keys() }));
  if (runs.length === 0) return { found: 0, expired: 0 };
  const handoffs = await database.run((db) => loadHandoffs(db, runs));
  const expiries = runs.map((run): Expiry => {
    const attempted = attemptedOf(targets, run, handoffs.get(versionKey(run)));
    if (run.observed) return { run, settlement: unreported(run) };
    const outcome = { kind: 'unknown', error: silenceOf(run), senderStopped: false } as const;
    return { run, settlement: settlementOf(outcome, attempted, now, Math.random()) };
  });
  const ids = await expire(state, expiries, now, 'skipLocked');
  // It waits for a row that other transactions have locked at every look, one row at a time.
  const starving = guard.starving(
    runs.map(({ id }) => id),
    ids,
  );
  for (const expiry of expiries.filter(({ run }) => starving.has(run.id)).slice(0, MAX_WAITED_FOR))
    await expire(state, [expiry], now, 'wait');
  return { found: runs.length, expired: ids.size };
}

/** Answers the ids of the runs that are settled now. */
async function expire(
  { database, events, wake, rests }: State,
  expiries: readonly Expiry[],
  now: Instant,
  meeting: MeetingLocks,
): Promise<ReadonlySet<string>> {
  const settled = new Set<string>();
  await seeTo(rests, expiries, {
    keyOf: ({ run }) => run.id,
    work: async (part) => {
      const { ids, effects } = await database.transaction((tx) => expireIfStillSilent(tx, part, meeting));
      const expired = part.filter(({ run }) => ids.has(run.id));
      if (expired.length > 0) events.emit({ type: 'runsExpired', runs: expired.map((one) => expiredRun(one, now)) });
      const again = expired.filter(({ settlement }) => settlement.status === 'pending');
      const toPull = again.some(({ run }) => run.queue !== null);
      const toAdmit = expired.some(({ run }) => run.isLimited);
      wakeFor(wake, { effects, toClaim: again.length, toPull, toAdmit });
      for (const id of ids) settled.add(id);
    },
    refused: ({ run }, error) => events.emit({ type: 'expiryRefused', runId: run.id, error }),
  });
  return settled;
}

/** Of an observed run: whatever its definition says, it is never tried again. */
function unreported(run: SilentRun): Settlement {
  const { failures, expiresAt, attempt } = run;
  const said = attempt === 0 ? 'its job reported nothing' : 'its job has begun, and reported no end';
  const message = `${said} by ${isoInstant(expiresAt)}`;
  const error = { kind: 'expired', message } as const;
  return { ...NOTHING_CAME, status: 'failed', failures, error };
}

const NOTHING_CAME = {
  ...{ leaseSeconds: null, retryAt: null, executionId: null, statusCode: null, body: null, doubt: null },
};

/** If the definition is missing, the run counts as at-least-once. */
function attemptedOf(targets: TargetRegistry, run: SilentRun, handoff: Handoff | undefined): Attempted {
  const { failures, startedAt } = run;
  const { retry, delivery, timeoutSeconds, completion, completionTimeoutSeconds } = handoff ?? NO_DEFINITION;
  const hasLookup = (handoff && targets.kindOf(handoff.target)?.hasLookup(handoff.target)) ?? false;
  const said = { retry, delivery, timeoutSeconds, completion, completionTimeoutSeconds };
  return { ...said, failures, startedAt, hasLookup, giveUpAt: null, doubt: null, wasHandedOff: true };
}

function silenceOf({ workerId, expiresAt }: SilentRun): AttemptError {
  const by = isoInstant(expiresAt);
  const message =
    workerId === null
      ? `no completion or heartbeat came by ${by}`
      : `the lease of worker ${workerId} ran out at ${by}: no completion or heartbeat came`;
  return { kind: 'expired', message };
}

function expiredRun({ run, settlement }: Expiry, now: Instant): RunExpired {
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
