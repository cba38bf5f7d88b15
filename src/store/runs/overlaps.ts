import { endRun, releaseRun } from '../../core/runs/transitions.ts';
import { type OverlapVerdict, judgeOverlap } from '../../core/schedules/overlap.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Instant } from '../../core/instant.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import { writeBacklogs } from '../backlogs/backlog-rows.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { queueOfLane } from '../../core/runs/run-lane.ts';
import { type GuardedSchedule, readGuarded } from './guarded-runs.ts';
import { type RunChange, lockOpenRuns, saveLockedRuns } from './lock-and-save.ts';

/** What became of the runs of some schedules that must not overlap. */
export interface JudgedOverlaps {
  /** Waiting runs that are pending now, and whether workers may pull some of them. */
  started: number;
  toPull: boolean;
  /** Runs with a limit started, or gave their place up. */
  toAdmit: boolean;
  skipped: number;
  /** Runs that gave way to a newer one. */
  replaced: number;
  /** Schedules that are to be judged again: another transaction has a run of them locked, or more of their runs wait. */
  again: readonly string[];
  /** Some of these can be judged again at once. */
  isMore: boolean;
  effects: number;
}

/** The most runs of one schedule that a judgement changes, and about the most of all of them. */
const MOST_OF_ONE = 200;
const MOST_OF_ALL = 2_000;

/**
 * Decides which waiting runs of these schedules start, go on waiting or are skipped, and which give way (core/schedules/overlap.ts). The
 * caller has the schedules' rows locked, by an earlier statement of this transaction. No row of a run is waited for: a schedule
 * of which another transaction has a run locked is left as it is. It reads and changes a few hundred runs of a schedule at most: if more
 * wait, the schedule is to be judged again; if more are to give way, the newest starts all the same, and all others do so in slices
 * (backlogs).
 */
export async function judgeOverlapsUnderLock(tx: Transaction, uids: readonly string[]): Promise<JudgedOverlaps> {
  if (uids.length === 0) return NOTHING_JUDGED;
  const most = Math.max(1, Math.min(MOST_OF_ONE, Math.floor(MOST_OF_ALL / uids.length)));
  const judged = (await readGuarded(tx, uids, most)).map((open) => ({
    ...open,
    verdicts: judgeOverlap(open.overlap, open),
  }));
  const ids = judged.flatMap(({ verdicts }) => [...verdicts.keys()]);
  const locked = new Map((await lockOpenRuns(tx, ids, 'skipLocked')).map((run) => [run.id, run]));
  const [passedOver, decided] = bothOf(judged, (one) => isBlocked(one, locked));
  const now = await databaseNow(tx);
  const changes = decided.flatMap(({ verdicts }) =>
    [...verdicts].flatMap(([id, verdict]): RunChange[] => {
      const from = locked.get(id);
      return from ? [changeOf(from, verdict, now)] : [];
    }),
  );
  const effects = (await saveLockedRuns(tx, changes)) + (await leaveReplaced(tx, decided, locked));
  const unfinished = decided.filter(({ moreWait, verdicts }) => moreWait && verdicts.size > 0);
  return {
    ...summaryOf(changes),
    again: [...passedOver, ...unfinished].map(({ uid }) => uid),
    isMore: unfinished.length > 0,
    effects,
  };
}

/** The same; what is to be judged again is judged soon, by way of an effect. */
export async function judgeOverlapsNowOrSoon(tx: Transaction, uids: readonly string[]): Promise<JudgedOverlaps> {
  const judged = await judgeOverlapsUnderLock(tx, uids);
  const effects = judged.effects + (await writeOverlapEffects(tx, judged.again));
  return { ...judged, effects };
}

const NOTHING_JUDGED: JudgedOverlaps = {
  started: 0,
  toPull: false,
  toAdmit: false,
  skipped: 0,
  replaced: 0,
  again: [],
  isMore: false,
  effects: 0,
};

/** What a judgement leaves to be done. */
export function workOf({ started, toPull, toAdmit, effects }: JudgedOverlaps): Work {
  return { effects, toClaim: started, toPull, toAdmit };
}

/** Events about a judgement, once it is committed. */
export function emitJudged(events: EventBus, { skipped, replaced }: JudgedOverlaps): void {
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'overlap', count: skipped });
  if (replaced > 0) events.emit({ type: 'runsCancelled', reason: 'replaced', count: replaced });
}

interface Judged extends GuardedSchedule {
  verdicts: Map<string, OverlapVerdict>;
}

type LockedRuns = ReadonlyMap<string, RunRecord>;

/** Another transaction works on one of its runs, or has just ended it. */
function isBlocked({ verdicts, statuses }: Judged, locked: LockedRuns): boolean {
  return [...verdicts.keys()].some((id) => locked.get(id)?.status !== statuses.get(id));
}

/** Runs that are to give way, and are too many for this transaction: they do so in slices. Answers for how many schedules. */
function leaveReplaced(tx: Transaction, judged: readonly Judged[], locked: LockedRuns): Promise<number> {
  const more = judged.filter(({ overlap, moreReplaceable }) => overlap === 'replace' && moreReplaceable);
  return writeBacklogs(
    tx,
    more.flatMap(({ uid, verdicts }) => {
      const started = [...verdicts].find(([, verdict]) => verdict === 'pending')?.[0] ?? '';
      const kept = locked.get(started);
      return kept ? [{ kind: 'replaced', uid, scheduleId: kept.scheduleId, keptRun: kept.id }] : [];
    }),
  );
}

/** A judgement follows from the end of a run. From these ends none does: this is it. */
function changeOf(from: RunRecord, verdict: OverlapVerdict, now: Instant): RunChange {
  if (verdict === 'pending') return { from, to: releaseRun(from, now) };
  const run = { ...from, overlapGuarded: false };
  if (verdict === 'skipped') return { from, to: endRun(run, { status: 'skipped', reason: 'overlap' }, now) };
  return replacedBy(from, now);
}

/** A run gives way to a newer one. */
export function replacedBy(from: RunRecord, now: Instant): RunChange {
  const run = { ...from, overlapGuarded: false };
  return { from, to: endRun(run, { status: 'cancelled', reason: 'replaced' }, now) };
}

function summaryOf(changes: readonly RunChange[]) {
  const endedAs = (status: RunRecord['status']) => changes.filter(({ to }) => to.status === status);
  const started = endedAs('pending');
  return {
    started: started.length,
    toPull: started.some(({ to }) => queueOfLane(to.lane) !== null),
    toAdmit: changes.some(({ from }) => from.limitId !== null),
    skipped: endedAs('skipped').length,
    replaced: endedAs('cancelled').length,
  };
}

function bothOf<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
