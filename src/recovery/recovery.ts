/**
 * Guarantees: a run whose claim was lost is found by its row. It goes on, or ends in a status that says why.
 * Transaction: one for each batch, which locks the runs and compares them with the claims as found.
 * If the process dies here: the next pass, here or elsewhere, finds the same rows.
 */
import type { LostBecause } from '../core/events.ts';
import type { RecoveryPolicy } from '../core/runs/lost-claim.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Rests, type StarvationGuard, createRests, createStarvationGuard } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { type LoopDeps, STATEMENT_LIMIT_MS } from '../postgres/database.ts';
import { seeTo } from '../postgres/see-to.ts';
import type { MeetingLocks } from '../store/runs/lock-and-save.ts';
import {
  type LostClaim,
  findClaimsOf,
  findExpiredClaims,
  findOrphans,
  takeOverIfStillClaimed,
} from '../store/runs/claims/take-over-lost-claims.ts';

interface RecoveryDeps extends RecoveryPolicy, LoopDeps {
  lease: Lease;
  intervalSeconds: number;
  /** A claim that is older than its attempt may take by this much is lost, whatever its instance says. */
  lostAfterSeconds: number;
  /** Whether this process knows of a claim that a row attributes to it. */
  hasClaim: (runId: string, attempt: number) => boolean;
  wake: Wake;
}

/**
 * The most runs of one kind of loss that one pass takes over. Together with the lanes' shares, this protects targets
 * from a flood.
 */
const BATCH = 2_000;
const NEXT_BATCH_MS = 1_000;
const MAX_WAITED_FOR = 3;

interface State extends RecoveryDeps {
  /** Claims that this process does not know of, and claims that are too old, each with the time since when. */
  unknown: ClaimWatch;
  overdue: ClaimWatch;
  guards: Record<LostBecause, StarvationGuard>;
  /** Runs whose row was refused. */
  rests: Rests;
}

export function createRecovery(deps: RecoveryDeps): Loop {
  const { clock, events } = deps;
  const state: State = {
    ...deps,
    unknown: createClaimWatch(clock),
    overdue: createClaimWatch(clock),
    rests: createRests({ clock, events, loop: 'recovery' }),
    guards: {
      orphaned: createStarvationGuard(),
      forgotten: createStarvationGuard(),
      expired: createStarvationGuard(),
    },
  };
  return createLoop({ name: 'recovery', clock, body: () => recover(state), events });
}

async function recover(state: State): Promise<number> {
  const { clock, events } = state;
  const began = clock.monotonic();
  // Each by itself: a failure of one must not stop the others.
  const found = await Promise.allSettled([takeOverOrphans(state), takeOverForgotten(state), takeOverExpired(state)]);
  const failed = found.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  events.emit({ type: 'recoveryFinished', durationMs: clock.monotonic() - began });
  const more = found.some((one) => one.status === 'fulfilled' && one.value);
  return more ? NEXT_BATCH_MS : state.intervalSeconds * 1000;
}

/** Each of these answers whether there may be more claims of its kind. */
async function takeOverOrphans(state: State): Promise<boolean> {
  const { database, rests } = state;
  const orphans = await database.run((db) => findOrphans(db, { limit: BATCH, besides: rests.keys() }));
  await takeOver(state, 'orphaned', orphans);
  return orphans.length === BATCH;
}

async function takeOverForgotten(state: State): Promise<boolean> {
  const { database, lease, hasClaim, unknown } = state;
  const resting = new Set(state.rests.keys());
  const { instanceId } = lease;
  const claims = await database.run((db) => findClaimsOf(db, instanceId));
  // Longer than a statement may take: its answer will not come any more.
  const forgotten = unknown.seenFor(
    claims.filter(({ runId, attempt }) => !hasClaim(runId, attempt) && !resting.has(runId)),
    STATEMENT_LIMIT_MS,
  );
  await takeOver(state, 'forgotten', forgotten.slice(0, BATCH));
  return forgotten.length > BATCH;
}

async function takeOverExpired(state: State): Promise<boolean> {
  const { database, lostAfterSeconds, rests } = state;
  const expired = await database.run((db) =>
    findExpiredClaims(db, lostAfterSeconds, { limit: BATCH, besides: rests.keys() }),
  );
  // Also by this process's own clock: a jump of the database's makes every attempt under way look old.
  await takeOver(state, 'expired', state.overdue.seenFor(expired, lostAfterSeconds * 1000));
  return false;
}

async function takeOver(state: State, found: LostBecause, claims: readonly LostClaim[]): Promise<void> {
  const taken = await takeOverNow(state, found, claims, 'skipLocked');
  // It waits for a row that other transactions have locked at every look, one row at a time.
  const ids = claims.map(({ runId }) => runId);
  const starving = state.guards[found].starving(ids, taken);
  for (const claim of claims.filter(({ runId }) => starving.has(runId)).slice(0, MAX_WAITED_FOR))
    await takeOverNow(state, found, [claim], 'wait');
}

/** Answers the ids of the runs that it took over. */
async function takeOverNow(
  state: State,
  found: LostBecause,
  claims: readonly LostClaim[],
  meeting: MeetingLocks,
): Promise<ReadonlySet<string>> {
  const { database, events, wake, rests } = state;
  const taken = new Set<string>();
  for (let first = 0; first < claims.length; first += MAX_TAKEN_AT_ONCE) {
    await seeTo(rests, claims.slice(first, first + MAX_TAKEN_AT_ONCE), {
      keyOf: ({ runId }) => runId,
      work: async (part) => {
        const { runs, effects } = await database.transaction((tx) => takeOverIfStillClaimed(tx, part, state, meeting));
        if (runs.length === 0) return;
        events.emit({ type: 'runsTakenOver', found, runs });
        wakeFor(wake, { effects, toClaim: runs.length, toAdmit: true });
        for (const { runId } of runs) taken.add(runId);
      },
      refused: ({ runId }, error) => events.emit({ type: 'takeOverRefused', runId, error }),
    });
  }
  return taken;
}

/** In one transaction: each run is read and written as a whole, with its payload. */
const MAX_TAKEN_AT_ONCE = 500;

interface ClaimWatch {
  /** The suspect claims that were suspect at every look for at least that long. */
  seenFor(claims: readonly LostClaim[], ms: number): LostClaim[];
}

/** A claim counts as lost only after this process itself has found it suspect for a while, by a clock that cannot step. */
function createClaimWatch(clock: Clock): ClaimWatch {
  /** Since when, in monotonic ms. */
  let since = new Map<string, number>();

  return {
    seenFor: (claims, ms) => {
      const now = clock.monotonic();
      since = new Map(claims.map((claim) => [keyOf(claim), since.get(keyOf(claim)) ?? now]));
      return claims.filter((claim) => now - (since.get(keyOf(claim)) ?? now) > ms);
    },
  };
}

/** A later attempt is another claim to watch. */
function keyOf({ runId, instanceId, attempt, handoffStartedAt }: LostClaim): string {
  return `${runId}/${instanceId}/${attempt}/${handoffStartedAt ?? ''}`;
}
