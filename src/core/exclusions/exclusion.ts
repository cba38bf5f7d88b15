import { LRUCache } from 'lru-cache';
import type { DayNumber, Instant } from '../instant.ts';
import {
  type DayRange,
  type DaySet,
  daySetOf,
  daySetOfWeekdays,
  hasDay,
  lastDayOutside,
  nextDayOutside,
  readDateEntry,
  unionOf,
  weekdayOf,
} from './day-set.ts';
import { type Exclude, type Timing, type Weekday, WEEKDAYS } from '../timing/timing.ts';
import { type Second, type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';

/** A version of a calendar: it judges the occurrences after `at`, up to and with the `at` of the next version. */
export interface CalendarVersion {
  version: number;
  at: Instant;
  days: DaySet;
}

/**
 * The versions of a calendar in the order of time. No version excludes what occurs before the first. Exception: if the
 * first one has a higher number than 1, the earlier versions are no longer kept, or were not read, so the first applies
 * to their time too.
 */
export interface CalendarHistory {
  id: string;
  versions: readonly CalendarVersion[];
}

/** By id. */
export type Calendars = ReadonlyMap<string, CalendarHistory>;

export const NO_CALENDARS: Calendars = new Map();

/** The days of entries. They were checked when they were stored; anything that is no entry is left out. */
export function daySetOfEntries(entries: readonly string[]): DaySet {
  return daySetOf(rangesOf(entries).flatMap((range) => range ?? []));
}

/** The ranges in the same order; null: it is no entry. */
function rangesOf(entries: readonly string[]): (DayRange | null)[] {
  return entries.map((entry) => {
    const range = readDateEntry(entry);
    return typeof range === 'string' ? null : range;
  });
}

/**
 * Decides which moments are excluded: a pure function of the schedule's dates and zone, and of the versions of its
 * calendars.
 */
export interface Exclusion {
  /** What excludes a moment: an entry of `exclude.dates`, the id of a calendar, or a weekday. Null: the moment is not excluded. */
  reasonAt(at: Instant): string | null;
  /**
   * The moment itself if nothing excludes it. Otherwise a later moment, and everything in between is excluded. Usually
   * that moment is the end of the excluded days, but it may be excluded as well: ask again.
   */
  freeFrom(at: Instant): Instant;
  versions: CalendarVersions;
}

/** The excluded days, as calendars said from one edit to the next: version 0 is the first. */
export interface CalendarVersions {
  /** The version that judges a moment: of the calendars' versions from before it. */
  indexAt(at: Instant): number;
  /** The last moment that a version judges. */
  endOf(version: number): Instant;
  has(version: number, day: DayNumber): boolean;
  /** The next day that is not excluded, or the one before (-1); the day itself, if it is not. */
  nearest(version: number, day: DayNumber, direction: 1 | -1): DayNumber;
  reasonOf(version: number, day: DayNumber): ExclusionReason | null;
}

export interface ExclusionReason {
  by: 'date' | 'calendar' | 'weekday';
  /** The entry of `exclude.dates`, the id of the calendar, or the weekday. */
  name: string;
}

/**
 * Null if nothing is excluded.
 * @throws Error if it names a calendar whose history is not given: its fire times are not known then
 * @throws RangeError for a zone that Intl does not know
 */
export function exclusionOf(
  { exclude, timezone }: Pick<Timing, 'exclude' | 'timezone'>,
  calendars: Calendars,
): Exclusion | null {
  if (exclude === null) return null;
  const histories = exclude.calendars.map((id) => historyIn(calendars, id));
  const known = compiled.get(exclude);
  if (known?.timezone === timezone && isSame(known.histories, histories)) return known.exclusion;
  const text = JSON.stringify([timezone, exclude]);
  const same = shared.get(text);
  const entry =
    same && isSame(same.histories, histories)
      ? same
      : { timezone, histories, exclusion: exclusionIn(zoneOffsets(timezone), exclude, histories) };
  shared.set(text, entry);
  compiled.set(exclude, entry);
  return entry.exclusion;
}

interface Entry {
  timezone: string | null;
  histories: CalendarHistory[];
  exclusion: Exclusion;
}

/** Planning repeatedly asks about objects that it keeps in memory anyway. */
const compiled = new WeakMap<Exclude, Entry>();
/** Many schedules exclude the same days: their days take 5 KB, and what was decided by them is found again. */
const shared = new LRUCache<string, Entry>({
  ...{ max: 1_000, maxSize: 5_000_000 },
  sizeCalculation: (_, text) => text.length,
});

function historyIn(calendars: Calendars, id: string): CalendarHistory {
  const history = calendars.get(id);
  if (!history) throw new Error(`the history of the calendar ${id} is not known here`);
  return history;
}

function isSame(some: readonly CalendarHistory[], others: readonly CalendarHistory[]): boolean {
  return some.every((one, index) => one === others[index]);
}

const DAY = 86_400;

function exclusionIn(zone: ZoneOffsets, exclude: Exclude, histories: readonly CalendarHistory[]): Exclusion {
  const versions = viewsOf(exclude, histories);
  return {
    versions,
    reasonAt: (at) => versions.reasonOf(versions.indexAt(at), localDay(zone, secondOf(at)))?.name ?? null,
    freeFrom: (at) => {
      const second = secondOf(at);
      const version = versions.indexAt(at);
      const free = endOfRun(zone, versions.daysOf(version), second);
      return free === second ? at : Math.min(free * 1000, versions.endOf(version) + 1);
    },
  };
}

const secondOf = (at: Instant): Second => Math.floor(at / 1000);

function localDay(zone: ZoneOffsets, second: Second): DayNumber {
  return Math.floor((second + zone.at(second).offset) / DAY);
}

function isWithin(day: DayNumber, { first, last }: DayRange): boolean {
  return first <= day && day <= last;
}

/** Periods without a change of any calendar: each begins after the end of the one before, and includes its own end. */
function viewsOf({ dates, weekdays = [] }: Exclude, histories: readonly CalendarHistory[]) {
  const own = daySetOfEntries(dates);
  const ofWeek = weekdays.length === 0 ? NOTHING : daySetOfWeekdays(maskOf(weekdays));
  const ends = [...new Set(histories.flatMap(changesOf))].sort((a, b) => a - b);
  const endOf = (version: number): Instant => ends[version] ?? Infinity;
  const unions: DaySet[] = [];
  const daysOf = (version: number): DaySet =>
    (unions[version] ??= unionOf([own, ofWeek, ...histories.map((history) => daysAt(history, endOf(version)))]));
  let ranges: (DayRange | null)[] | undefined;
  return {
    indexAt: (at: Instant) => countBefore(ends, at),
    endOf,
    daysOf,
    has: (version: number, day: DayNumber) => hasDay(daysOf(version), day),
    nearest: (version: number, day: DayNumber, direction: 1 | -1) =>
      direction === 1 ? nextDayOutside(daysOf(version), day) : lastDayOutside(daysOf(version), day),
    reasonOf: (version: number, day: DayNumber): ExclusionReason | null => {
      if (!hasDay(daysOf(version), day)) return null;
      ranges ??= rangesOf(dates);
      const entry = dates[ranges.findIndex((range) => range !== null && isWithin(day, range))];
      if (entry !== undefined) return { by: 'date', name: entry };
      const calendar = histories.find((history) => hasDay(daysAt(history, endOf(version)), day));
      if (calendar) return { by: 'calendar', name: calendar.id };
      return { by: 'weekday', name: WEEKDAYS[weekdayOf(day)] ?? '' };
    },
  };
}

/** Bit 0: Monday. */
function maskOf(weekdays: readonly Weekday[]): number {
  return weekdays.reduce((mask, day) => mask | (1 << WEEKDAYS.indexOf(day)), 0);
}

function changesOf({ versions }: CalendarHistory): Instant[] {
  return versions.flatMap(({ version, at }, index) => (index === 0 && version > 1 ? [] : [at]));
}

function daysAt({ versions }: CalendarHistory, at: Instant): DaySet {
  const [first] = versions;
  const inForce = versions.findLast((one) => one.at < at) ?? (first && first.version > 1 ? first : undefined);
  return inForce?.days ?? NOTHING;
}

const NOTHING = daySetOfEntries([]);

/** How many of the sorted values are smaller. */
function countBefore(sorted: readonly Instant[], at: Instant): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? Infinity) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The second itself if its local day is not in the set. Otherwise the first second after it that does not belong to its
 * run of excluded days: the midnight after them, or the moment at which the clock jumps over an end of the run.
 */
function endOfRun(zone: ZoneOffsets, days: DaySet, second: Second): Second {
  const first = localDay(zone, second);
  const end = nextDayOutside(days, first);
  if (end === first) return second;
  // No offset is a day or more: each moment in between belongs to a day of the run. So a century costs no more than a week.
  const [sureFrom, sureUntil] = [(first + 1) * DAY, (end - 1) * DAY];
  let at = second;
  for (;;) {
    if (sureFrom <= at && at < sureUntil) at = sureUntil;
    const segment = zone.at(at);
    const day = Math.floor((at + segment.offset) / DAY);
    if (day < first || day >= end) return at;
    at = Math.min(segment.end, end * DAY - segment.offset, at < sureFrom ? sureFrom : Infinity);
  }
}
