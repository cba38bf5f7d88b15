import { type Instant, type DayNumber, DAY_MS } from '../instant.ts';
import { LAST_KEPT_DAY, type LocalTimes, nextDay, nextTime } from '../cron/cron-wall.ts';
import { leastOf, remembering } from '../cron/remembering.ts';
import type { Second } from '../zones/zone-offsets.ts';
import { DAY_SECONDS, type DatesJudged, dateBeginsAt, exists, secondOf, calendarVersionOf } from './local-dates.ts';

/** The fires of an excluded day go at most this far; else they are not made. */
export const MAX_MOVE_DAYS = 31;

/** What was decided for a day that the expressions and `every` keep. */
interface Decision {
  day: DayNumber;
  /** Where its fires are made; null: nowhere. */
  movedTo: DayNumber | null;
  /** The version of the calendars that decided. */
  version: number;
}

interface MovingDays extends DatesJudged {
  direction: 1 | -1;
  /** The local times of each expression, on the days that it and `every` keep. */
  localTimes: readonly LocalTimes[];
}

interface Moving extends MovingDays {
  /** By version: the excluded days from `from` up to `to`, on which their fires are made. */
  runs: Map<number, { from: DayNumber; to: DayNumber }>;
}

export interface MovedDays {
  /** The first local time at or after one at which it fires; null: never again. */
  nextLocalTime(wall: Second): Second | null;
  decisionOf: (day: DayNumber) => Decision;
  /** The days whose fires are made on a day, that day perhaps included. */
  daysMovedTo: (to: DayNumber) => DayNumber[];
  /** The expressions that keep a day. */
  localTimesOn(day: DayNumber): LocalTimes[];
}

export function movedDays(moving: MovingDays): MovedDays {
  const { localTimes } = moving;
  const decisions = decisionsOf({ ...moving, runs: new Map() });
  const localTimesOn = (day: DayNumber) => localTimes.filter(({ days }) => nextDay(days, day) === day);
  let last: { day: DayNumber; localTimes: LocalTimes[] } | null = null;
  const localTimesMovedTo = (day: DayNumber): LocalTimes[] => {
    if (last?.day !== day) last = { day, localTimes: [...new Set(decisions.daysMovedTo(day).flatMap(localTimesOn))] };
    return last.localTimes;
  };
  const nextLocalTime = (wall: Second): Second | null => {
    const first = Math.floor(wall / DAY_SECONDS);
    for (let day = decisions.nextDayMovedTo(first); day !== null; day = decisions.nextDayMovedTo(day + 1)) {
      const time = firstTime(localTimesMovedTo(day), day === first ? wall - day * DAY_SECONDS : 0);
      if (time !== null) return day * DAY_SECONDS + time;
    }
    return null;
  };
  return {
    nextLocalTime,
    localTimesOn,
    decisionOf: decisions.decisionOf,
    daysMovedTo: decisions.daysMovedTo,
  };
}

function decisionsOf(moving: Moving) {
  const { localTimes } = moving;
  const known = new Map<DayNumber, Decision>();
  const decisionOf = (day: DayNumber): Decision => {
    const decision = known.get(day) ?? decide(moving, day);
    if (known.size >= KNOWN) known.clear();
    known.set(day, decision);
    return decision;
  };
  /** The first day at or after one on which fires are made. */
  const nextDayMovedTo = remembering((from) => {
    let best: DayNumber | null = null;
    const { first, reachAhead } = reachOf(moving, from);
    for (let day = nextKeptDay(localTimes, first); day !== null; day = nextKeptDay(localTimes, day + 1)) {
      if (best !== null && day > best + reachAhead) break;
      const { movedTo } = decisionOf(day);
      if (movedTo !== null && movedTo >= from && (best === null || movedTo < best)) best = movedTo;
    }
    return best;
  });
  const daysMovedTo = (to: DayNumber): DayNumber[] => {
    const found: DayNumber[] = [];
    const { first, last } = reachOf(moving, to);
    for (let day = nextKeptDay(localTimes, first); day !== null && day <= last;) {
      if (decisionOf(day).movedTo === to) found.push(day);
      day = nextKeptDay(localTimes, day + 1);
    }
    return found;
  };
  return { decisionOf, nextDayMovedTo, daysMovedTo };
}

/** More than an edit asks about. */
const KNOWN = 128;

interface Reach {
  /** The days whose fires can be made on one. */
  first: DayNumber;
  last: DayNumber;
  /** How many days after a day may have a fire that is made earlier than its own. */
  reachAhead: number;
}

/**
 * Fires on a day come from it, or from one of the 31 days before or after it. If calendars say the same of all of these and of all later
 * days, only from the run of excluded days that ends, or begins, beside it: usually there is none.
 */
function reachOf(moving: Moving, day: DayNumber): Reach {
  const { versions, direction, firstVersion } = moving;
  const version = Math.max(firstVersion, versions.indexAt((day - MAX_MOVE_DAYS - 2) * DAY_MS));
  const isSettled = versions.endOf(version) === Infinity;
  if (direction === 1) {
    const first = isSettled ? freeFrom(moving, version, day - 1, -1) + 1 : -Infinity;
    return { first: Math.max(first, day - MAX_MOVE_DAYS), last: day, reachAhead: 0 };
  }
  if (!isSettled) return { first: day, last: day + MAX_MOVE_DAYS, reachAhead: MAX_MOVE_DAYS };
  const last = freeFrom(moving, version, day + 1, 1) - 1;
  return { first: day, last: Math.min(last, day + MAX_MOVE_DAYS), reachAhead: 0 };
}

/** The nearest day in a direction that is not excluded and existed; the day itself, if that is so. */
function freeFrom({ zone, versions }: Moving, version: number, day: DayNumber, direction: 1 | -1): DayNumber {
  let free = versions.nearest(version, day, direction);
  while (!exists(zone, free)) free = versions.nearest(version, free + direction, direction);
  return free;
}

/** The first day at or after one that any of them keeps. */
export function nextKeptDay(localTimes: readonly LocalTimes[], from: DayNumber): DayNumber | null {
  const first = leastOf(localTimes, ({ days }) => nextDay(days, from));
  return first !== null && first <= LAST_KEPT_DAY ? first : null;
}

function firstTime(localTimes: readonly LocalTimes[], from: Second): Second | null {
  return leastOf(localTimes, (wall) => {
    const time = nextTime(wall, from);
    return time < 0 ? null : time;
  });
}

/**
 * A day is decided by what the calendars said as it began. Fires that are made before their day begins are
 * decided by the calendars as they are at the first of them: an edit after that moment comes too late. (An edit that
 * moves them to a moment that has passed decides it at once.)
 */
function decide(moving: Moving, day: DayNumber): Decision {
  const { zone, versions, direction, firstVersion } = moving;
  const [first, last] = [day - MAX_MOVE_DAYS - 2, day + 2].map((one) => versions.indexAt(one * DAY_MS));
  if (direction === 1 || first === last) {
    const version = calendarVersionOf(moving, day);
    const to = targetOf(moving, version, day);
    return { day, movedTo: to !== null && exists(zone, day) ? to : null, version };
  }
  if (!exists(zone, day)) return { day, movedTo: null, version: 0 };
  const begins = dateBeginsAt(zone, day);
  const earliest = begins - (MAX_MOVE_DAYS + 2) * DAY_MS;
  for (let version = Math.max(versions.indexAt(earliest), firstVersion); ; version += 1) {
    const to = targetOf(moving, version, day);
    const made = to === null || to === day ? begins : Math.min(begins, firstFireOn(moving, day, to));
    if (made <= versions.endOf(version)) return { day, movedTo: to, version };
  }
}

/** The day itself, unless it is excluded. */
function targetOf(moving: Moving, version: number, day: DayNumber): DayNumber | null {
  const { versions, direction, runs } = moving;
  if (!versions.has(version, day)) return day;
  const run = runs.get(version);
  const isInRun =
    run !== undefined && (direction === 1 ? run.from <= day && day < run.to : run.to < day && day <= run.from);
  const to = isInRun ? run.to : freeFrom(moving, version, day, direction);
  if (!isInRun) runs.set(version, { from: day, to });
  return Math.abs(to - day) <= MAX_MOVE_DAYS ? to : null;
}

function firstFireOn({ zone, localTimes }: Moving, day: DayNumber, to: DayNumber): Instant {
  const times = localTimes.flatMap((wall) => (nextDay(wall.days, day) === day ? [wall.firstTime] : []));
  return (secondOf(zone, to * DAY_SECONDS + Math.min(...times)) ?? Infinity) * 1000;
}

/** Whether one of them keeps a fire between two local times of its day, both included. */
export function firesWithin(localTimes: readonly LocalTimes[], from: Second, until: Second): boolean {
  const time = firstTime(localTimes, Math.max(from, 0));
  return time !== null && time <= until;
}
