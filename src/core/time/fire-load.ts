import type { Instant } from '../instant.ts';
import { type Calendars, NO_CALENDARS } from '../exclusions/exclusion.ts';
import type { Identity, Timing } from '../timing/timing.ts';
import { type FireTimes, costOf, dependsOnIdentity, fireTimes, lastBetween } from './fire-times.ts';

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

type Steps = Generator<void, void, void>;

/** Counts the fires that are due in each bucket, over schedules that are added one after the other. */
export interface LoadCount {
  /** Works in steps, as `finish` does: each `next()` is short. `after`: fires are made after this moment only. @throws LoadTooLarge */
  add(timing: Timing, identity: Identity, after?: Instant | null): Steps;
  /** Counts the timings that were put off, once for all schedules that share one. @throws LoadTooLarge */
  finish(): Steps;
  /** Subtracts fires that a caller asked to skip. The schedule is added afterwards. */
  leaveOut(timing: Timing, identity: Identity, skips: Iterable<Instant>): Steps;
  /** Buckets with fires, in order. */
  buckets(): { at: Instant; fires: number }[];
  /** How many schedules were counted, without those that cannot be planned. */
  schedules(): number;
  /** Those with the most fires first, at most `top`; without those with none. */
  firing(): Firing[];
}

export interface Firing {
  id: string;
  fires: number;
}

/** There is more to count than one call may. */
export class LoadTooLarge extends Error {}

interface Bounds {
  maxSteps?: number;
  /** Of so many schedules it is remembered how often each fires. */
  top?: number;
}

interface State extends Required<Bounds> {
  period: LoadPeriod;
  fires: Map<Instant, number>;
  alike: Map<string, Alike>;
  /** The first `top` of those that were noted are among them. */
  most: Firing[];
  /** By the schedule's id, before it is added. */
  leftOut: Map<string, number>;
  schedules: number;
  steps: number;
  yieldAt: number;
}

export function createLoadCount(period: LoadPeriod, { maxSteps = MAX_STEPS, top = 0 }: Bounds = {}): LoadCount {
  const begun = { fires: new Map(), alike: new Map(), leftOut: new Map(), most: [], schedules: 0, steps: 0 };
  const state: State = { period, maxSteps, top, yieldAt: SLICE_STEPS, ...begun };
  return {
    add: (timing, identity, after = null) => add(state, { timing, identity, after }),
    finish: () => finish(state),
    leaveOut: (timing, identity, skips) => leaveOut(state, timing, identity, skips),
    buckets: () => {
      const found = [...state.fires].filter(([, sum]) => sum > 0).sort(([a], [b]) => a - b);
      return found.map(([at, sum]) => ({ at, fires: sum }));
    },
    schedules: () => state.schedules,
    firing: () => sortMost(state),
  };
}

function* add(state: State, given: Pick<Alike, 'timing' | 'identity' | 'after'>): Steps {
  const { alike, leftOut, top } = state;
  const { timing, identity, after } = given;
  const one = { ...given, count: 1, ids: [identity.id] };
  if (after !== null || dependsOnIdentity(timing) || isLong(timing) || leftOut.has(identity.id))
    return yield* count(state, one);
  // What becomes of missed fires plays no part.
  const key = JSON.stringify({ ...timing, catchUp: null, catchUpLimit: null, graceSeconds: null });
  const known = alike.get(key);
  if (!known) alike.set(key, one);
  else {
    known.count += 1;
    // Ids of those alike come in any order: the first in theirs are wanted, as everywhere.
    if (top > 0) known.ids.push(identity.id);
  }
  if (alike.size >= MAX_TIMINGS) yield* finish(state);
  else if (spend(state, 1)) yield;
}

function* finish(state: State): Steps {
  for (const one of state.alike.values()) yield* count(state, one);
  state.alike.clear();
}

function* count(state: State, { timing, identity, after, count: times, ids }: Alike): Steps {
  const { fires, leftOut } = state;
  const period = { ...state.period, from: Math.max(state.period.from, (after ?? -Infinity) + 1) };
  let each = 0;
  try {
    for (const part of partsOf(timing, identity, period)) {
      if ('fires' in part) {
        each += part.fires;
        addTo(fires, part.at, part.fires * times);
      }
      if (spend(state, part.cost)) yield;
    }
    state.schedules += times;
    for (const id of ids) noteMost(state, { id, fires: each - (leftOut.get(id) ?? 0) });
  } catch (error) {
    // A schedule that cannot be planned does not fire.
    if (error instanceof LoadTooLarge) throw error;
  }
}

function* leaveOut(state: State, timing: Timing, identity: Identity, skips: Iterable<Instant>): Steps {
  const { from, to, bucketMs, calendars = NO_CALENDARS } = state.period;
  for (const dueAt of dueAmong(() => fireTimes(timing, identity, calendars), skips)) {
    if (dueAt >= from && dueAt < to) {
      addTo(state.fires, bucketOf(dueAt, bucketMs), -1);
      addTo(state.leftOut, identity.id, 1);
    }
    if (spend(state, 2 * costOf(timing))) yield;
  }
}

/** True: other work should get a turn. */
function spend(state: State, cost: number): boolean {
  state.steps += cost;
  if (state.steps > state.maxSteps) throw new LoadTooLarge('too many fires to count at once');
  if (state.steps < state.yieldAt) return false;
  state.yieldAt = state.steps + SLICE_STEPS;
  return true;
}

function addTo<Key>(sums: Map<Key, number>, key: Key, more: number): void {
  sums.set(key, (sums.get(key) ?? 0) + more);
}

/** Schedules with the same fire times. */
interface Alike {
  timing: Timing;
  identity: Identity;
  after: Instant | null;
  count: number;
  /** All of them, where it is asked who they are. */
  ids: string[];
}

/** What comes is sorted once it is twice as many as are kept. */
function noteMost(state: State, one: Firing): void {
  if (state.top === 0 || one.fires <= 0) return;
  state.most.push(one);
  if (state.most.length >= 2 * state.top + 100) sortMost(state);
}

function sortMost(state: State): Firing[] {
  const { most, top } = state;
  state.most = most.sort((a, b) => b.fires - a.fires || (a.id < b.id ? -1 : 1)).slice(0, top);
  return state.most;
}

/** When those are due that are fires at all. */
function* dueAmong(timesOf: () => FireTimes, instants: Iterable<Instant>): Generator<Instant> {
  try {
    const times = timesOf();
    for (const at of instants) if (times.next(at - 1) === at) yield times.dueAt(at);
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
  const { everySeconds, jitterSeconds, exclude, kept } = timing;
  const isEven = everySeconds !== null && jitterSeconds === 0 && exclude === null && !kept;
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
