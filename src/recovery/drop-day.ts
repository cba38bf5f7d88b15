/**
 * Guarantees: a day is dropped once nothing of it is open, nothing open has still to be told of it, and all of it ended longer ago than
 * history is kept; with all its attempts, keys and dependencies.
 * Transaction: one for each batch of keys and dependencies; then one, sent as one message, in which the day goes.
 * If the process dies here: the day is there, without some of its keys and dependencies, or it is gone; the next pass goes on.
 */
import type { DayKeptBecause } from '../core/events.ts';
import type { Instant } from '../core/instant.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from '../store/database.ts';
import { isNotNow, isTableGone } from '../store/errors.ts';
import type { History, HistoryDay } from '../store/history-days.ts';
import {
  type Holding,
  clearDay,
  deleteRunsOf,
  dropDayIfUnused,
  openRunsOf,
  runsOfDay,
  runsWaitingForDay,
} from '../store/retention.ts';

export interface DropDayDeps {
  database: Database;
  /** May change the schema. */
  schemaDatabase: Database;
  events: EventBus;
  /** Rows that are deleted at once. */
  batch: number;
}

/** What became of it. `lastEnd`: of its runs; `runs`: how many it had. */
export type DayFate =
  | { kind: 'dropped'; runs: number }
  | { kind: 'gone' }
  | { kind: 'kept'; because: DayKeptBecause; holding: Holding; lastEnd: Instant | null };

const NOBODY: Holding = { count: 0, runs: [] };
/** One look at a day reads all of it. */
const LOOK_LIMIT_MS = 20_000;
/** After a time in which a lock could not be had. After the last one the day is left for another round. */
const PAUSES_MS = [2_000, 5_000, 15_000, 30_000];

/** In steps: yields before each further one for how long to rest at least, in ms. `before`: what ended then or later is kept. */
export async function* dropDay(
  deps: DropDayDeps,
  history: History,
  day: HistoryDay,
  before: Instant,
): AsyncGenerator<number, DayFate, void> {
  const { database, events } = deps;
  const lookAgain = () => database.run((db) => look(db, day, before), LOOK_LIMIT_MS);
  try {
    for (const pause of [...PAUSES_MS, null]) {
      let seen = await lookAgain();
      if (seen.kind === 'kept') return seen;
      yield 0;
      // That may take long.
      if (yield* clear(deps, day)) seen = await lookAgain();
      if (seen.kind === 'kept') return seen;
      const obstacle = await drop(deps, history, day, before);
      if (obstacle === null) {
        yield* deleteRows(deps, day, before);
        return { kind: 'dropped', runs: seen.runs };
      }
      events.emit({ type: 'historyDelayed', work: 'drop', day: day.to, forMs: 0, lasts: false, ...obstacle });
      if (pause !== null) yield pause;
    }
  } catch (error) {
    if (!isTableGone(error)) throw error;
    return { kind: 'gone' };
  }
  return { kind: 'kept', because: 'locked', holding: NOBODY, lastEnd: null };
}

async function look(
  db: Parameters<typeof openRunsOf>[0],
  day: HistoryDay,
  before: Instant,
): Promise<Extract<DayFate, { kind: 'kept' }> | { kind: 'free'; runs: number }> {
  const open = await openRunsOf(db, day);
  if (open.count > 0) return { kind: 'kept', because: 'open', holding: open, lastEnd: null };
  const { runs, lastEnd } = await runsOfDay(db, day);
  if (lastEnd !== null && lastEnd >= before) {
    return { kind: 'kept', because: 'endedLate', holding: NOBODY, lastEnd };
  }
  const waiting = await runsWaitingForDay(db, day, before);
  if (waiting.count > 0) return { kind: 'kept', because: 'needed', holding: waiting, lastEnd: null };
  return { kind: 'free', runs };
}

/** Answers whether there was anything. */
async function* clear(
  { database, batch }: DropDayDeps,
  day: HistoryDay,
): AsyncGenerator<number, boolean, void> {
  let cleared = false;
  while ((await database.run((db) => clearDay(db, day, batch))) > 0) {
    cleared = true;
    yield 0;
  }
  return cleared;
}

/** Null: it is done. Else what was in the way, for now. */
async function drop(
  { schemaDatabase }: DropDayDeps,
  { other }: History,
  day: HistoryDay,
  before: Instant,
): Promise<{ error: unknown } | null> {
  try {
    await schemaDatabase.run((db) => dropDayIfUnused(db, day, { before, other }));
    return null;
  } catch (error) {
    if (isNotNow(error)) return { error };
    throw error;
  }
}

/** Of a day that has no tables of its own. */
async function* deleteRows(
  { database, batch }: DropDayDeps,
  day: HistoryDay,
  before: Instant,
): AsyncGenerator<number, void, void> {
  if (!day.isInOther) return;
  while ((await database.transaction((tx) => deleteRunsOf(tx, day, { before, limit: batch }))) > 0) yield 0;
}
