import type { Instant } from '../instant.ts';
import { LAST_KEPT_DAY, type WallTimes, nextDay, nextTime } from '../cron/cron-wall.ts';
import { DAY_MS, type DayNumber } from '../utc-day.ts';
import type { Second } from '../zones/zone-offsets.ts';
import { DAY_SECONDS, type DatesJudged, dateBeginsAt, exists, secondOf, viewOf } from './local-dates.ts';

/** The fires of an excluded day go at most this far. */
export const MAX_MOVE_DAYS = 31;

/** What was decided for a day that the expressions and `every` keep. */
interface Fate {
  day: DayNumber;
  /** Where its fires are made; null: nowhere. */
  to: DayNumber | null;
  /** The view of the calendars that decided. */
  view: number;
}

interface MovingDays extends DatesJudged {
  direction: 1 | -1;
  /** The local times of each expression, on the days that it and `every` keep. */
  walls: readonly WallTimes[];
}

interface Moving extends MovingDays {
  /** By view: the days from one on to another one are excluded, and go there. */
  runs: Map<number, { from: DayNumber; to: DayNumber }>;
}

export interface MovedDays {
  /** The first local time at or after one at which it fires; null: never again. */
  nextWall(wall: Second): Second | null;
  fateOf: (day: DayNumber) => Fate;
  /** The days whose fires are made on a day, that day perhaps included. */
  sourcesOf: (to: DayNumber) => DayNumber[];
  /** The expressions that keep a day. */
  wallsOn(day: DayNumber): WallTimes[];
}

export function movedDays(moving: MovingDays): MovedDays {
  const { walls } = moving;
  const fates = fatesOf({ ...moving, runs: new Map() });
  const wallsOn = (day: DayNumber) => walls.filter(({ days }) => nextDay(days, day) === day);
  let last: { day: DayNumber; walls: WallTimes[] } | null = null;
  const wallsTo = (day: DayNumber): WallTimes[] => {
    if (last?.day !== day) last = { day, walls: [...new Set(fates.sourcesOf(day).flatMap(wallsOn))] };
    return last.walls;
  };
  const nextWall = (wall: Second): Second | null => {
    const first = Math.floor(wall / DAY_SECONDS);
    for (let day = fates.nextTarget(first); day !== null; day = fates.nextTarget(day + 1)) {
      const time = firstTime(wallsTo(day), day === first ? wall - day * DAY_SECONDS : 0);
      if (time !== null) return day * DAY_SECONDS + time;
    }
    return null;
  };
  return { nextWall, wallsOn, fateOf: fates.fateOf, sourcesOf: fates.sourcesOf };
}

function fatesOf(moving: Moving) {
  const { walls } = moving;
  const known = new Map<DayNumber, Fate>();
  const fateOf = (day: DayNumber): Fate => {
    const fate = known.get(day) ?? decide(moving, day);
    if (known.size >= KNOWN) known.clear();
    known.set(day, fate);
    return fate;
  };
  /** Between the two, no fires are made. */
  let asked: { from: DayNumber; to: DayNumber | null } | null = null;
  /** The first day at or after one on which fires are made. */
  const nextTarget = (from: DayNumber): DayNumber | null => {
    if (asked !== null && from >= asked.from && (asked.to === null || from <= asked.to)) return asked.to;
    let best: DayNumber | null = null;
    const { first, reachAhead } = reachOf(moving, from);
    for (let day = nextSource(walls, first); day !== null; day = nextSource(walls, day + 1)) {
      if (best !== null && day > best + reachAhead) break;
      const { to } = fateOf(day);
      if (to !== null && to >= from && (best === null || to < best)) best = to;
    }
    asked = { from, to: best };
    return best;
  };
  const sourcesOf = (to: DayNumber): DayNumber[] => {
    const found: DayNumber[] = [];
    const { first, last } = reachOf(moving, to);
    for (let day = nextSource(walls, first); day !== null && day <= last;) {
      if (fateOf(day).to === to) found.push(day);
      day = nextSource(walls, day + 1);
    }
    return found;
  };
  return { fateOf, nextTarget, sourcesOf };
}

/** More than an edit asks about. */
const KNOWN = 128;

interface Reach {
  /** The days whose fires can be made on one. */
  first: DayNumber;
  last: DayNumber;
  /** How far after a day its fires can still be made earlier than those of the days before it. */
  reachAhead: number;
}

/**
 * Fires on a day come from it, or from one of the 31 days before or after it. If calendars say the same of all of these and of all later
 * days, only from the run of excluded days that ends, or begins, beside it: usually there is none.
 */
function reachOf(moving: Moving, day: DayNumber): Reach {
  const { views, direction, firstView } = moving;
  const view = Math.max(firstView, views.indexAt((day - MAX_MOVE_DAYS - 2) * DAY_MS));
  const isSettled = views.endOf(view) === Infinity;
  if (direction === 1) {
    const first = isSettled ? freeFrom(moving, view, day - 1, -1) + 1 : -Infinity;
    return { first: Math.max(first, day - MAX_MOVE_DAYS), last: day, reachAhead: 0 };
  }
  if (!isSettled) return { first: day, last: day + MAX_MOVE_DAYS, reachAhead: MAX_MOVE_DAYS };
  const last = freeFrom(moving, view, day + 1, 1) - 1;
  return { first: day, last: Math.min(last, day + MAX_MOVE_DAYS), reachAhead: 0 };
}

/** The nearest day in a direction that is not excluded and existed; the day itself, if that is so. */
function freeFrom({ zone, views }: Moving, view: number, day: DayNumber, direction: 1 | -1): DayNumber {
  let free = views.nearest(view, day, direction);
  while (!exists(zone, free)) free = views.nearest(view, free + direction, direction);
  return free;
}

/** The first day at or after one that any of them keeps. */
export function nextSource(walls: readonly WallTimes[], from: DayNumber): DayNumber | null {
  let first: DayNumber | null = null;
  for (const { days } of walls) {
    const day = nextDay(days, from);
    if (day !== null && (first === null || day < first)) first = day;
  }
  return first !== null && first <= LAST_KEPT_DAY ? first : null;
}

function firstTime(walls: readonly WallTimes[], from: Second): Second | null {
  let first: Second | null = null;
  for (const wall of walls) {
    const time = nextTime(wall, from);
    if (time >= 0 && (first === null || time < first)) first = time;
  }
  return first;
}

/**
 * A day is decided by what the calendars said as it began. Where its fires were to be made earlier than that, the first of
 * them decides it: an edit after that moment comes too late. (An edit that moves them to a moment that has passed decides it
 * at once.)
 */
function decide(moving: Moving, day: DayNumber): Fate {
  const { zone, views, direction, firstView } = moving;
  const [first, last] = [day - MAX_MOVE_DAYS - 2, day + 2].map((one) => views.indexAt(one * DAY_MS));
  if (direction === 1 || first === last) {
    const view = viewOf(moving, day);
    const to = targetOf(moving, view, day);
    return { day, to: to !== null && exists(zone, day) ? to : null, view };
  }
  if (!exists(zone, day)) return { day, to: null, view: 0 };
  const begins = dateBeginsAt(zone, day);
  const earliest = begins - (MAX_MOVE_DAYS + 2) * DAY_MS;
  for (let view = Math.max(views.indexAt(earliest), firstView); ; view += 1) {
    const to = targetOf(moving, view, day);
    const made = to === null || to === day ? begins : Math.min(begins, firstFireOn(moving, day, to));
    if (made <= views.endOf(view)) return { day, to, view };
  }
}

/** The day itself, unless it is excluded. */
function targetOf(moving: Moving, view: number, day: DayNumber): DayNumber | null {
  const { views, direction, runs } = moving;
  if (!views.has(view, day)) return day;
  const run = runs.get(view);
  const isInRun =
    run !== undefined &&
    (direction === 1 ? run.from <= day && day < run.to : run.to < day && day <= run.from);
  const to = isInRun ? run.to : freeFrom(moving, view, day, direction);
  if (!isInRun) runs.set(view, { from: day, to });
  return Math.abs(to - day) <= MAX_MOVE_DAYS ? to : null;
}

function firstFireOn({ zone, walls }: Moving, day: DayNumber, to: DayNumber): Instant {
  const times = walls.flatMap((wall) => (nextDay(wall.days, day) === day ? [wall.firstTime] : []));
  return (secondOf(zone, to * DAY_SECONDS + Math.min(...times)) ?? Infinity) * 1000;
}

/** Whether one of them keeps a fire between two local times of its day, both included. */
export function firesWithin(walls: readonly WallTimes[], from: Second, until: Second): boolean {
  const time = firstTime(walls, Math.max(from, 0));
  return time !== null && time <= until;
}
