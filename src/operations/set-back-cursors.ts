/**
 * Guarantees: schedules that were planned, or written, while the database's clock was ahead are planned from this moment on, and no fire
 *   that has a run is made again.
 *   Runs that were written meanwhile go on as of now.
 * Transaction: one a page of schedules, guarded by version and cursor; before it the runs are marked, in slices.
 * If the process dies here: what was committed is done; run again, it goes on.
 */
import type { Calendars } from '../core/exclusions/exclusion.ts';
import type { Instant } from '../core/instant.ts';
import { calendarIdsIn, readTiming } from '../core/schedules/stored-definition.ts';
import { createdUpTo } from '../core/time/cursors.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import { LONGEST_REACH_MS } from '../core/days/day-times.ts';
import type { Database } from '../postgres/database.ts';
import type { Executor } from '../postgres/executor.ts';
import { FIRST_UUID } from '../postgres/sql/arrays.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import { readCalendars } from '../store/calendars/calendar-histories.ts';
import {
  type ScheduleAhead,
  type SetBack,
  listSchedulesAhead,
  markMade,
  setBackIfUnmoved,
} from '../store/schedules/cursors-ahead.ts';
import { bringBackPutOffs, bringBackRuns } from '../store/runs/written-ahead.ts';
import type { Unplannable } from './count-skips.ts';

export interface CursorsSetBack {
  now: Instant;
  setBack: number;
  /** Fires after `now` that have a run: they are not made again. */
  made: number;
  /** Schedules that another process planned or edited meanwhile. */
  fenced: number;
  unplannable: Unplannable[];
  /** Runs that wait no longer for a moment that is far off. */
  runs: number;
}

const PAGE = 100;
const MARKED_AT_ONCE = 10_000;
const RUNS_AT_ONCE = 2_000;
const LIMIT_MS = 60_000;
/** Instances may live meanwhile. */
export async function setBackCursors({
  database,
  signal,
}: {
  database: Database;
  signal: AbortSignal;
}): Promise<CursorsSetBack> {
  const now = await database.run(databaseNow);
  const done: CursorsSetBack = { now, setBack: 0, made: 0, fenced: 0, unplannable: [], runs: 0 };
  done.runs = await bringAllBack(database, signal);
  for (let after = FIRST_UUID; ;) {
    const page = await database.run((db) => listSchedulesAhead(db, { after, limit: PAGE }), LIMIT_MS);
    const last = page.at(-1);
    if (!last) return done;
    after = last.uid;
    done.made += await markAllMade(database, page, { now, signal });
    const { moves, unplannable } = await movesOf(database, page, now);
    done.unplannable.push(...unplannable);
    const uids = await database.transaction((tx) => setBackIfUnmoved(tx, moves, now), LIMIT_MS);
    done.setBack += uids.length;
    done.fenced += moves.length - uids.length;
  }
}

async function bringAllBack(database: Database, signal: AbortSignal): Promise<number> {
  const slices = { size: RUNS_AT_ONCE, signal };
  await inSlices(database, slices, bringBackPutOffs);
  return inSlices(database, slices, bringBackRuns);
}

async function markAllMade(
  database: Database,
  page: readonly ScheduleAhead[],
  { now, signal }: { now: Instant; signal: AbortSignal },
): Promise<number> {
  const uids = page.map(({ uid }) => uid);
  const slices = { size: MARKED_AT_ONCE, signal };
  return inSlices(database, slices, (db, limit) => markMade(db, uids, { now, limit }));
}

/** Until there are fewer than so many. `work` answers how many there were; this, how many in all. */
async function inSlices(
  database: Database,
  { size, signal }: { size: number; signal: AbortSignal },
  work: (db: Executor, limit: number) => Promise<number>,
): Promise<number> {
  for (let sum = 0; ;) {
    signal.throwIfAborted();
    const count = await database.run((db) => work(db, size), LIMIT_MS);
    sum += count;
    if (count < size) return sum;
  }
}

async function movesOf(database: Database, page: readonly ScheduleAhead[], now: Instant) {
  const ids = [...new Set(page.flatMap(({ timing }) => calendarIdsIn(timing)))];
  const { histories } = await database.run((db) => readCalendars(db, ids, now - LONGEST_REACH_MS), LIMIT_MS);
  const unplannable: Unplannable[] = [];
  const moves = page.flatMap((schedule) => {
    try {
      return moveOf(schedule, readTiming(schedule.timing), { now, calendars: histories });
    } catch (error) {
      unplannable.push({ scheduleId: schedule.id, error });
      return [];
    }
  });
  return { moves, unplannable };
}

/** A schedule that follows others has no fires of its own; a paused one goes on where it is enabled. */
function moveOf(
  schedule: ScheduleAhead,
  timing: ReturnType<typeof readTiming>,
  { now, calendars }: { now: Instant; calendars: Calendars },
): SetBack {
  const createdAt = createdUpTo(now, schedule.createdAt, timing);
  if (timing.after !== null) return { schedule, createdAt, nextOccurrenceAt: null, nextFireAt: null };
  const times = fireTimes(timing, { id: schedule.id, createdAt }, calendars);
  const nextOccurrenceAt = times.next(now);
  const isDue = schedule.enabled && nextOccurrenceAt !== null;
  return { schedule, createdAt, nextOccurrenceAt, nextFireAt: isDue ? times.dueAt(nextOccurrenceAt) : null };
}
