/**
 * Guarantees: runs of a schedule that must not overlap start one at a time, whoever records or ends them at the same moment.
 * Transaction: the schedules' row locks are taken by its first statement; the decision is a later one, and sees all that was done under them.
 * If the process dies here: what waits for nothing is found by recovery, and judged then.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import type { Aftermath, EndedDependency, StoppedRun } from '../store/followers.ts';
import type { OpenSpan } from '../store/open-runs.ts';
import { type Judged, judgeOverlapsUnderLock, lockFreeForOverlap } from '../store/overlaps.ts';

export interface FollowUpDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  openSpan: OpenSpan;
  /** There are runs to claim, or to be pulled. */
  wakeDispatch: () => void;
  wakeWorkers: () => void;
  /** Runs are there that fail, as what they depended on has, or that are still to be released by these. */
  seeToDependents: (toRelease: readonly EndedDependency[]) => void;
  /** Their targets were working on them. */
  cancelTargets: (runs: readonly StoppedRun[]) => void;
}

/** Sees to what the ends of runs brought about, in a loop of its own: a schedule that somebody has locked delays no other. */
export interface FollowUps extends Turning {
  add(aftermath: Aftermath): void;
}

const LARGEST_BATCH = 500;
const IDLE_MS = 60_000;
/** Before schedules that others have locked are tried again. */
const PASSED_OVER_MS = 50;

export function createFollowUps(deps: FollowUpDeps): FollowUps {
  const { database, clock, events } = deps;
  const toJudge = new Set<string>();
  const loop = createLoop({ name: 'overlap', clock, body: judge, events });

  async function judge(): Promise<number> {
    const uids = [...toJudge].slice(0, LARGEST_BATCH);
    if (uids.length === 0) return IDLE_MS;
    // Taken out first: what ends while they are judged has them judged again.
    for (const uid of uids) toJudge.delete(uid);
    const judged = await database
      .transaction(async (tx) => {
        const { free, held } = await lockFreeForOverlap(tx, uids);
        const verdict = await judgeOverlapsUnderLock(tx, free);
        return { ...verdict, held: [...held, ...verdict.held] };
      })
      .catch((error: unknown) => {
        for (const uid of uids) toJudge.add(uid);
        throw error;
      });
    events.emit({ type: 'overlapsJudged', count: uids.length });
    tellJudged(events, judged);
    // What is skipped or replaced has ended too, and others may follow that.
    add(aftermathOfJudged({ ...judged, held: [] }));
    const others = toJudge.size;
    for (const uid of judged.held) toJudge.add(uid);
    if (judged.held.length === uids.length) return PASSED_OVER_MS;
    return others > 0 ? 0 : toJudge.size > 0 ? PASSED_OVER_MS : IDLE_MS;
  }

  function add(aftermath: Aftermath): void {
    if (aftermath.openedSince !== null) deps.openSpan.include(aftermath.openedSince);
    if (aftermath.toClaim > 0) deps.wakeDispatch();
    if (aftermath.toPull) deps.wakeWorkers();
    if (aftermath.toFail || aftermath.toRelease.length > 0) deps.seeToDependents(aftermath.toRelease);
    if (aftermath.stopped.length > 0) deps.cancelTargets(aftermath.stopped);
    if (aftermath.toJudge.length === 0) return;
    for (const uid of aftermath.toJudge) toJudge.add(uid);
    loop.wake();
  }

  return {
    ...turningOf(loop),
    add,
  };
}

/** What a judgement leaves to be done. */
export function aftermathOfJudged({ aftermath, started, held }: Judged): Aftermath {
  return { ...aftermath, toJudge: [...aftermath.toJudge, ...held], toClaim: aftermath.toClaim + started };
}

export function tellJudged(events: EventBus, { skipped, replaced }: Judged): void {
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'overlap', count: skipped });
  if (replaced > 0) events.emit({ type: 'runsCancelled', reason: 'replaced', count: replaced });
}
