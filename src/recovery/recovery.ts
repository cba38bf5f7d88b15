/**
 * Guarantees: a run whose claim is in vain is found by its row and driven on, or ends in a status that says why; whoever heard of what.
 * Transaction: what is found is taken over in one statement, under the claims it was found with.
 * If the process dies here: the next pass, here or elsewhere, finds the same rows.
 */
import type { LostBecause } from '../core/events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/lease.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import { createPatience } from '../runtime/patience.ts';
import { reasonOf } from '../runtime/reason.ts';
import { type Database, STATEMENT_LIMIT_MS } from '../store/database.ts';
import { isDataRefused } from '../store/errors.ts';
import { type EdgeCursor, releaseOverlooked } from '../store/dependents.ts';
import { type Aftermath, NO_AFTERMATH } from '../store/followers.ts';
import { forgetLongDead } from '../store/instances.ts';
import type { OpenSpan } from '../store/open-runs.ts';
import { abandonWaitingOfDeleted, findWaitingInVain } from '../store/overlaps.ts';
import {
  type LostClaim,
  type RecoveryPolicy,
  findClaimsOf,
  findExpiredClaims,
  findOrphans,
  takeOverIfStillClaimed,
} from '../store/recoveries.ts';
import { createClaimWatch } from './claim-watch.ts';

export interface RecoveryDeps extends RecoveryPolicy {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  intervalSeconds: number;
  openSpan: OpenSpan;
  /** A claim older than its attempt may take by this is in vain, whatever its instance says. */
  lostAfterSeconds: number;
  /** Whether this process knows of a claim that a row says it has. */
  holds: (runId: string, attempt: number) => boolean;
  /** There are runs to claim. */
  wakeDispatch: () => void;
  /** Sees to what the ends of runs brought about. */
  followUp: (aftermath: Aftermath) => void;
}

/** Driven on per pass and instance: with the lanes' shares, what keeps the runs of a dead instance from stampeding their targets. */
const BATCH = 2_000;
const NEXT_BATCH_MS = 1_000;
const MOST_WAITED_FOR = 3;
/** Open dependencies that one pass looks at. */
const EDGES = 2_000;
const FIRST_EDGE: EdgeCursor = {
  dependsOn: '00000000-0000-0000-0000-000000000000',
  runId: '00000000-0000-0000-0000-000000000000',
};

export function createRecovery(deps: RecoveryDeps): Loop {
  const { database, clock, events, lease, openSpan } = deps;
  const unknown = createClaimWatch(clock);
  const overdue = createClaimWatch(clock);
  const patience = { orphaned: createPatience(), forgotten: createPatience(), expired: createPatience() };
  let lookedThrough: EdgeCursor | null = null;

  async function recover(): Promise<number> {
    const began = clock.monotonic();
    const looked = await Promise.allSettled([openSpan.look()]);
    // Each by itself: what stops one must not stop the others.
    const found = await Promise.allSettled([
      takeOverOrphans(),
      takeOverForgotten(),
      takeOverExpired(),
      releaseWaiting(),
      releaseDependents(),
    ]);
    await database.run((db) => forgetLongDead(db, openSpan.since()));
    const failed = [...looked, ...found].find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    events.emit({ type: 'recoveryFinished', durationMs: clock.monotonic() - began });
    const more = found.some((one) => one.status === 'fulfilled' && one.value);
    return more ? NEXT_BATCH_MS : deps.intervalSeconds * 1000;
  }

  /** Each answers whether there may be more of them. */
  async function takeOverOrphans(): Promise<boolean> {
    const orphans = await database.run((db) => findOrphans(db, openSpan.since(), BATCH));
    await takeOver('orphaned', orphans);
    return orphans.length === BATCH;
  }

  async function takeOverForgotten(): Promise<boolean> {
    const { instanceId } = lease;
    const forgotten = forgottenOf(await database.run((db) => findClaimsOf(db, openSpan.since(), instanceId)));
    await takeOver('forgotten', forgotten.slice(0, BATCH));
    return forgotten.length > BATCH;
  }

  async function takeOverExpired(): Promise<boolean> {
    const { lostAfterSeconds } = deps;
    const expired = await database.run((db) =>
      findExpiredClaims(db, openSpan.since(), lostAfterSeconds, BATCH),
    );
    // By this process's own clock as well: a step of the database's makes every attempt under way look old.
    await takeOver('expired', overdue.seenFor(expired, lostAfterSeconds * 1000));
    return false;
  }

  async function releaseWaiting(): Promise<boolean> {
    const { abandoned, aftermath } = await database.transaction((tx) =>
      abandonWaitingOfDeleted(tx, openSpan.since(), BATCH),
    );
    deps.followUp(aftermath);
    if (abandoned > 0)
      events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: null, count: abandoned });
    const toJudge = await database.run((db) => findWaitingInVain(db, openSpan.since(), BATCH));
    if (toJudge.length > 0) events.emit({ type: 'waitingReleased', count: toJudge.length });
    deps.followUp({ ...NO_AFTERMATH, toJudge });
    return toJudge.length === BATCH;
  }

  /** Also those that were to fail: whoever saw to them may be gone. */
  async function releaseDependents(): Promise<boolean> {
    const { released, next, aftermath } = await database.transaction((tx) =>
      releaseOverlooked(tx, lookedThrough ?? FIRST_EDGE, EDGES),
    );
    lookedThrough = next;
    if (released > 0) events.emit({ type: 'waitingReleased', count: released });
    deps.followUp({ ...aftermath, toFail: true });
    return false;
  }

  /** For longer than a statement may take: its answer will not come any more. */
  function forgottenOf(claims: readonly LostClaim[]): LostClaim[] {
    return unknown.seenFor(
      claims.filter(({ runId, attempt }) => !deps.holds(runId, attempt)),
      STATEMENT_LIMIT_MS,
    );
  }

  async function takeOver(found: LostBecause, claims: readonly LostClaim[]): Promise<void> {
    const taken = await takeOverNow(found, claims);
    // What others have locked at every look is waited for, one at a time.
    const over = patience[found].over(
      claims.map(({ runId }) => runId),
      taken,
    );
    for (const claim of claims.filter(({ runId }) => over.has(runId)).slice(0, MOST_WAITED_FOR))
      await takeOverNow(found, [claim], { wait: true });
  }

  /** Answers the ids of those it took over. */
  async function takeOverNow(
    found: LostBecause,
    claims: readonly LostClaim[],
    how: { wait?: boolean } = {},
  ): Promise<ReadonlySet<string>> {
    const [only, ...others] = claims;
    if (!only) return new Set();
    try {
      const { runs, aftermath } = await database.transaction((tx) =>
        takeOverIfStillClaimed(tx, claims, deps, how),
      );
      if (runs.length === 0) return new Set();
      events.emit({ type: 'runsTakenOver', found, runs });
      deps.wakeDispatch();
      deps.followUp(aftermath);
      return new Set(runs.map(({ runId }) => runId));
    } catch (error) {
      if (!isDataRefused(error)) throw error;
      // A row that cannot be written must not hold up the others: halve until it stands alone.
      if (others.length === 0) {
        events.emit({ type: 'takeOverRefused', runId: only.runId, error: reasonOf(error) });
        return new Set();
      }
      const half = Math.ceil(claims.length / 2);
      const first = await takeOverNow(found, claims.slice(0, half), how);
      return new Set([...first, ...(await takeOverNow(found, claims.slice(half), how))]);
    }
  }

  return createLoop({ name: 'recovery', clock, body: recover, events });
}
