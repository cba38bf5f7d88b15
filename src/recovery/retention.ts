/**
 * Guarantees: days that are older than history is kept are dropped whole, one after the other with pauses between, and then the
 * definitions that nothing uses any more; a day that has to stay holds up no other one, and is told.
 * Transaction: those of each step (drop-day.ts, definition-walk.ts).
 * If the process dies here: what is done is done; the next pass, here or elsewhere, finds what is left.
 */
import type { DayDropped, DayKeptBecause } from '../core/events.ts';
import type { Instant } from '../core/instant.ts';
import { horizonOf } from '../core/time/catch-up.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import { databaseNow } from '../store/database-now.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS } from '../core/history-day.ts';
import { type History, type HistoryDay, countOther, listHistory } from '../store/history-days.ts';
import { createDefinitionWalk } from './definition-walk.ts';
import { type DayFate, dropDay } from './drop-day.ts';

export interface RetentionDeps {
  database: Database;
  /** May change the schema. */
  schemaDatabase: Database;
  clock: Clock;
  events: EventBus;
  retentionDays: number;
  /** Between two looks at what has become old meanwhile; the usual unless a test says otherwise. */
  intervalMs?: number;
  /** Rows that are deleted at once. */
  batch?: number;
}

const INTERVAL_MS = 600_000;
const BATCH = 1_000;
/** Plans and backfills reach back to the horizon: what they must find there is kept, however long they take. */
const MARGIN_DAYS = 1;
/** For each ms of work so many of rest: history may go slowly. */
const REST = 4;
const SHORTEST_REST_MS = 20;
/** The counting of what stands in the default partition. */
const LOOK_LIMIT_MS = 20_000;

export function createRetention(deps: RetentionDeps): Loop {
  const { database, clock, events, retentionDays, intervalMs = INTERVAL_MS, batch = BATCH } = deps;
  const definitions = createDefinitionWalk(database, clock, batch);
  const kept = createKept(clock, events, intervalMs);
  let steps: AsyncGenerator<number, void, void> | null = null;

  /** One step of a round. */
  async function pass(): Promise<number> {
    const began = clock.monotonic();
    steps ??= round();
    const step = await steps.next().catch((error: unknown) => {
      steps = null;
      throw error;
    });
    if (!step.done) return Math.max(step.value, SHORTEST_REST_MS, REST * (clock.monotonic() - began));
    steps = null;
    return intervalMs;
  }

  /** Yields for how long to rest at least, in ms. */
  async function* round(): AsyncGenerator<number, void, void> {
    const before = await keptSince();
    const history = await database.run(listHistory);
    const old = await oldDays(history, before);
    kept.only(old);
    yield 0;
    const dropped: DayDropped[] = [];
    for (const day of old) {
      if (kept.isSettled(day, before)) continue;
      const fate = yield* attempt(history, day, before);
      if (fate.kind === 'kept') kept.add(day, fate);
      else kept.remove(day);
      if (fate.kind === 'dropped') dropped.push({ day: day.to, runs: fate.runs });
      yield 0;
    }
    while (await definitions.step(before)) yield 0;
    events.emit({ type: 'historyDropped', days: dropped, definitions: definitions.dropped() });
    events.emit({ type: 'historySeen', ...(await seen()), kept: kept.counts() });
  }

  /** One that fails is passed over by the rounds that follow at once. */
  async function* attempt(
    history: History,
    day: HistoryDay,
    before: Instant,
  ): AsyncGenerator<number, DayFate, void> {
    try {
      return yield* dropDay({ ...deps, batch }, history, day, before);
    } catch (error) {
      kept.fail(day);
      throw error;
    }
  }

  /** By both clocks: one that is far ahead must not make all of history look old. */
  async function keptSince(): Promise<Instant> {
    const now = Math.min(await database.run(databaseNow), clock.now());
    return horizonOf(now, retentionDays + MARGIN_DAYS);
  }

  async function oldDays(history: History, before: Instant): Promise<HistoryDay[]> {
    const standing = await database.run((db) => countOther(db, history, { to: before }), LOOK_LIMIT_MS);
    const inOther = [...standing.keys()].map((from) => ({
      ...history.other,
      from,
      to: from + DAY_MS,
      isInOther: true,
    }));
    return [...history.days, ...inOther].filter(({ to }) => to <= before).sort((a, b) => a.to - b.to);
  }

  async function seen(): Promise<{ days: number; oldest: Instant | null }> {
    const { days } = await database.run(listHistory);
    return { days: days.length, oldest: days[0] ? days[0].to - DAY_MS : null };
  }

  return createLoop({ name: 'retention', clock, body: pass, events });
}

type Kept = Extract<DayFate, { kind: 'kept' }>;

/** Old days that had to stay; each is told once for each reason. */
function createKept(clock: Clock, events: EventBus, intervalMs: number) {
  const fates = new Map<string, Kept>();
  const failedAt = new Map<string, number>();
  const keyOf = ({ runs, to }: HistoryDay) => `${runs} ${to}`;
  return {
    /** Forgets all others. */
    only: (days: readonly HistoryDay[]): void => {
      const there = new Set(days.map(keyOf));
      for (const map of [fates, failedAt])
        for (const key of [...map.keys()]) if (!there.has(key)) map.delete(key);
    },
    /** There is no need to look at it: the last of its ends is too young, and ends only get later; or a look has failed just now. */
    isSettled: (day: HistoryDay, before: Instant): boolean => {
      const failed = failedAt.get(keyOf(day));
      if (failed !== undefined && clock.monotonic() - failed < intervalMs) return true;
      return (fates.get(keyOf(day))?.lastEnd ?? -Infinity) >= before;
    },
    fail: (day: HistoryDay) => failedAt.set(keyOf(day), clock.monotonic()),
    remove: (day: HistoryDay) => fates.delete(keyOf(day)),
    add: (day: HistoryDay, fate: Kept): void => {
      const { because, holding } = fate;
      const isNews = fates.get(keyOf(day))?.because !== because;
      fates.set(keyOf(day), fate);
      if (isNews) events.emit({ type: 'dayKept', day: day.to, because, ...holding });
    },
    counts: (): Record<DayKeptBecause, number> => {
      const counts = { open: 0, needed: 0, endedLate: 0, locked: 0 };
      for (const { because } of fates.values()) counts[because] += 1;
      return counts;
    },
  };
}
