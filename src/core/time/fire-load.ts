import type { Instant } from '../instant.ts';
import { type Calendars, NO_CALENDARS } from '../exclusions/calendar-history.ts';
import type { Timing } from '../schedules/schedule.ts';
import {
  type FireTimes,
  type Identity,
  costOf,
  dependsOnIdentity,
  fireTimes,
  lastBetween,
} from './fire-times.ts';

export interface LoadPeriod {
  /** Inclusive. */
  from: Instant;
  /** Exclusive. */
  to: Instant;
  /** Buckets begin at whole multiples of it since 1970. */
  bucketMs: number;
  /** The histories of the calendars that the timings name; those of a timing are present when it is added. */
  calendars?: Calendars;
}

/** Counts the fires that are due in each bucket, over schedules that are added one after the other. */
export interface LoadCount {
  /** Works in steps, as `finish` does: each `next()` is short. @throws LoadTooLarge */
  add(timing: Timing, identity: Identity): Generator<void, void, void>;
  /** Counts the timings that were put off, once for all schedules that share one. @throws LoadTooLarge */
  finish(): Generator<void, void, void>;
  /** Subtracts fires that a caller asked to skip. The schedule is added afterwards. */
  leaveOut(timing: Timing, identity: Identity, skips: Iterable<Instant>): Generator<void, void, void>;
  /** Buckets with fires, in order. */
  buckets(): { at: Instant; fires: number }[];
  /** How many schedules were counted, without those that cannot be planned. */
  schedules(): number;
  /** Those with the most fires first, at most `top`; without those with none. */
  firing(): Firing[];
}

/** A schedule, by its id. */
export interface Firing {
  id: string;
  fires: number;
}

interface Bounds {
  maxSteps?: number;
  /** Of so many schedules it is remembered how often each fires. */
  top?: number;
}

/** There is more to count than one call may. */
export class LoadTooLarge extends Error {
  override readonly name = 'LoadTooLarge';
}

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createLoadCount(
  period: LoadPeriod,
  { maxSteps = MAX_STEPS, top = 0 }: Bounds = {},
): LoadCount {
  const fires = new Map<Instant, number>();
  const alike = new Map<string, Alike>();
  const most = createMost(top);
  /** By the schedule's id, before it is added. */
  const leftOut = new Map<string, number>();
  let schedules = 0;
  let steps = 0;
  let pauseAt = SLICE_STEPS;

  /** True: other work should get a turn. */
  function spend(cost: number): boolean {
    steps += cost;
    if (steps > maxSteps) throw new LoadTooLarge('too many fires to count at once');
    if (steps < pauseAt) return false;
    pauseAt = steps + SLICE_STEPS;
    return true;
  }

  function* count({ timing, identity, count: times, ids }: Alike): Generator<void, void, void> {
    let each = 0;
    try {
      for (const part of partsOf(timing, identity, period)) {
        if ('fires' in part) {
          each += part.fires;
          fires.set(part.at, (fires.get(part.at) ?? 0) + part.fires * times);
        }
        if (spend(part.cost)) yield;
      }
      schedules += times;
      for (const id of ids) most.note({ id, fires: each - (leftOut.get(id) ?? 0) });
    } catch (error) {
      // A schedule that cannot be planned does not fire.
      if (error instanceof LoadTooLarge) throw error;
    }
  }

  function* finish(): Generator<void, void, void> {
    for (const one of alike.values()) yield* count(one);
    alike.clear();
  }

  return {
    add: function* (timing, identity) {
      const one = { timing, identity, count: 1, ids: [identity.id] };
      if (dependsOnIdentity(timing) || isLong(timing) || leftOut.has(identity.id)) return yield* count(one);
      const key = JSON.stringify([
        timing.cron,
        timing.timezone,
        timing.everySeconds,
        timing.at,
        timing.startAt,
        timing.endAt,
        timing.exclude,
      ]);
      const known = alike.get(key);
      if (!known) alike.set(key, one);
      else {
        known.count += 1;
        // Ids of those alike come in any order: the first in theirs are wanted, as everywhere.
        if (top > 0) known.ids.push(identity.id);
      }
      if (alike.size >= MAX_TIMINGS) yield* finish();
      else if (spend(1)) yield;
    },
    finish,
    leaveOut: function* (timing, identity, skips) {
      const times = () => fireTimes(timing, identity, period.calendars ?? NO_CALENDARS);
      for (const dueAt of dueAmong(times, skips)) {
        const at = bucketOf(dueAt, period.bucketMs);
        if (dueAt >= period.from && dueAt < period.to) {
          fires.set(at, (fires.get(at) ?? 0) - 1);
          leftOut.set(identity.id, (leftOut.get(identity.id) ?? 0) + 1);
        }
        if (spend(2 * costOf(timing))) yield;
      }
    },
    buckets: () =>
      [...fires]
        .filter(([, sum]) => sum > 0)
        .sort(([a], [b]) => a - b)
        .map(([at, sum]) => ({ at, fires: sum })),
    schedules: () => schedules,
    firing: () => most.list(),
  };
}

/** Schedules with the same fire times. */
interface Alike {
  timing: Timing;
  identity: Identity;
  count: number;
  /** All of them, where it is asked who they are. */
  ids: string[];
}

/** Keeps the first of many; what comes is sorted once it is twice as many. */
function createMost(top: number) {
  let kept: Firing[] = [];
  const sort = (): Firing[] => {
    kept = kept.sort((a, b) => b.fires - a.fires || (a.id < b.id ? -1 : 1)).slice(0, top);
    return kept;
  };
  return {
    note: (one: Firing): void => {
      if (top === 0 || one.fires <= 0) return;
      kept.push(one);
      if (kept.length >= 2 * top + 100) sort();
    },
    list: sort,
  };
}

/** When those are due that are fires at all. */
function* dueAmong(times: () => FireTimes, instants: Iterable<Instant>): Generator<Instant> {
  try {
    const known = times();
    for (const at of instants) if (known.next(at - 1) === at) yield known.dueAt(at);
  } catch {
    // A schedule that cannot be planned does not fire.
  }
}

/** Beyond this length, keeping texts to find equal ones takes more memory than it saves work. */
function isLong({ exclude }: Timing): boolean {
  return exclude !== null && exclude.dates.length > 100;
}

const MAX_STEPS = 5_000_000;
const SLICE_STEPS = 400;
/** How many different timings are kept at once. */
const MAX_TIMINGS = 10_000;

/** Parses an expression and finds where to begin, in steps. */
const COST_TO_BEGIN = 20;

type Part = { cost: number } | { cost: number; at: Instant; fires: number };

function* partsOf(timing: Timing, identity: Identity, period: LoadPeriod): Generator<Part, void, void> {
  const times = fireTimes(timing, identity, period.calendars ?? NO_CALENDARS);
  const costOfNext = costOf(timing);
  yield { cost: COST_TO_BEGIN * costOfNext };
  const { everySeconds, jitterSeconds } = timing;
  const isEven = everySeconds !== null && jitterSeconds === 0 && timing.exclude === null;
  if (isEven && everySeconds * 1000 < period.bucketMs) {
    yield* bucketsOfInterval(times, everySeconds * 1000, timing.endAt ?? Infinity, period);
    return;
  }
  const { from, to, bucketMs } = period;
  let at = firstOf(times, jitterSeconds, from);
  while (at !== null && at < to) {
    const dueAt = times.dueAt(at);
    const cost = jitterSeconds === 0 ? costOfNext : 3 * costOfNext;
    if (dueAt < from || dueAt >= to) yield { cost };
    else yield { cost, at: bucketOf(dueAt, bucketMs), fires: 1 };
    at = times.next(at);
  }
}

/** With jitter, the last occurrence before the period can be due in it, and no earlier one: each is due before the next. */
function firstOf(times: FireTimes, jitterSeconds: number, from: Instant): Instant | null {
  const earlier = jitterSeconds === 0 ? null : lastBetween(times, from - jitterSeconds * 1000 - 1, from - 1);
  return earlier ?? times.next(from - 1);
}

/** Several fires for each bucket: counted by arithmetic. */
function* bucketsOfInterval(
  times: FireTimes,
  everyMs: number,
  endAt: Instant,
  { from, to, bucketMs }: LoadPeriod,
): Generator<Part, void, void> {
  const end = Math.min(to, endAt);
  let first = times.next(from - 1);
  while (first !== null && first < end) {
    const at = bucketOf(first, bucketMs);
    const fires = Math.ceil((Math.min(at + bucketMs, end) - first) / everyMs);
    yield { cost: 1, at, fires };
    first += fires * everyMs;
  }
}

function bucketOf(at: Instant, bucketMs: number): Instant {
  return Math.floor(at / bucketMs) * bucketMs;
}
