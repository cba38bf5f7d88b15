import type { Instant } from '../instant.ts';
import { LAST_KEPT_DAY, type WallTimes, nextDay, nextTime } from '../cron/cron-wall.ts';
import { DAY_MS, type DayNumber } from '../utc-day.ts';
import type { Second, ZoneOffsets } from '../zones/zone-offsets.ts';
import { DAY_SECONDS, type Judging, beginningOf, exists, secondOf, viewOf } from './local-dates.ts';

/** The fires of an excluded day go at most this far. */
export const MAX_MOVE_DAYS = 31;

/** What was decided for a day that the expressions and `every` keep. */
export interface Fate {
  day: DayNumber;
  /** Where its fires are made; null: nowhere. */
  to: DayNumber | null;
  /** The view of the calendars that decided. */
  view: number;
}

interface Moving extends Judging {
  direction: 1 | -1;
  /** The local times of each expression, on the days that it and `every` keep. */
  walls: readonly WallTimes[];
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

export function movedDays(moving: Moving): MovedDays {
  const { walls } = moving;
  const fates = fatesOf(moving);
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
  const { walls, direction } = moving;
  const known = new Map<DayNumber, Fate>();
  const fateOf = (day: DayNumber): Fate => {
    const fate = known.get(day) ?? decide(moving, day);
    if (known.size >= KNOWN) known.clear();
    known.set(day, fate);
    return fate;
  };
  // Fires on a day come from it, or from one of the days before or after it.
  const [reachBack, reachAhead] = direction === 1 ? [MAX_MOVE_DAYS, 0] : [0, MAX_MOVE_DAYS];
  /** The first day at or after one on which fires are made. */
  const nextTarget = (from: DayNumber): DayNumber | null => {
    let best: DayNumber | null = null;
    for (let day = nextSource(walls, from - reachBack); day !== null; day = nextSource(walls, day + 1)) {
      if (best !== null && day > best + reachAhead) break;
      const { to } = fateOf(day);
      if (to !== null && to >= from && (best === null || to < best)) best = to;
    }
    return best;
  };
  const sourcesOf = (to: DayNumber): DayNumber[] => {
    const found: DayNumber[] = [];
    const end = to + reachAhead;
    for (let day = nextSource(walls, to - reachBack); day !== null && day <= end;) {
      if (fateOf(day).to === to) found.push(day);
      day = nextSource(walls, day + 1);
    }
    return found;
  };
  return { fateOf, nextTarget, sourcesOf };
}

const KNOWN = 1024;

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
  const times = walls.map((wall) => nextTime(wall, from)).filter((time) => time >= 0);
  return times.length === 0 ? null : Math.min(...times);
}

/**
 * A day is decided by what the calendars said as it began. Where its fires were to be made earlier than that, the first of
 * them decides it: an edit after that moment comes too late. (An edit that moves them to a moment that has passed decides it
 * at once.)
 */
function decide(moving: Moving, day: DayNumber): Fate {
  const { zone, views, direction, since } = moving;
  if (!exists(zone, day)) return { day, to: null, view: 0 };
  const [first, last] = [day - MAX_MOVE_DAYS - 2, day + 2].map((one) => views.indexAt(one * DAY_MS));
  if (direction === 1 || first === last) {
    const view = viewOf(moving, day);
    return { day, to: targetOf(moving, view, day), view };
  }
  const begins = beginningOf(zone, day);
  const earliest = begins - (MAX_MOVE_DAYS + 2) * DAY_MS;
  for (let view = views.indexAt(Math.max(since + 1, earliest)); ; view += 1) {
    const to = targetOf(moving, view, day);
    const made = to === null || to === day ? begins : Math.min(begins, firstFireOn(moving, day, to));
    if (made <= views.endOf(view)) return { day, to, view };
  }
}

/** The day itself, unless it is excluded. */
function targetOf({ zone, views, direction }: Moving, view: number, day: DayNumber): DayNumber | null {
  for (let away = 0; away <= MAX_MOVE_DAYS; away += 1) {
    const to = day + direction * away;
    if (!views.has(view, to) && exists(zone, to)) return to;
  }
  return null;
}

function firstFireOn({ zone, walls }: Moving, day: DayNumber, to: DayNumber): Instant {
  const times = walls.flatMap((wall) => (nextDay(wall.days, day) === day ? [wall.firstTime] : []));
  return (secondOf(zone, to * DAY_SECONDS + Math.min(...times)) ?? Infinity) * 1000;
}

/** The instants of a day's fires, by the expressions that keep it, on another day or on its own: in order, each once. */
export function* firesMovedTo(
  zone: ZoneOffsets,
  walls: readonly WallTimes[],
  to: DayNumber,
): Generator<Instant, void, void> {
  let last = -Infinity;
  for (let time = firstTime(walls, 0); time !== null; time = firstTime(walls, time + 1)) {
    const second = secondOf(zone, to * DAY_SECONDS + time);
    if (second !== null && second * 1000 > last) yield (last = second * 1000);
  }
}
