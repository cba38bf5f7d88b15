import type { Instant } from '../instant.ts';
import type { Exclude, Timing } from '../schedules/schedule.ts';
import { type Second, type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import { type CalendarHistory, type Calendars, daySetOfEntries, rangesOf } from './calendar-history.ts';
import type { DayNumber } from '../utc-day.ts';
import type { DayRange } from './date-entries.ts';
import { type DaySet, hasDay, nextDayOutside, unionOf } from './day-set.ts';

/**
 * Decides which moments are excluded: a pure function of the schedule's dates and zone, and of the versions of its
 * calendars.
 */
export interface Exclusion {
  /** What excludes a moment: the entry of `exclude.dates`, or the id of a calendar. Null: the moment is not excluded. */
  reasonAt(at: Instant): string | null;
  /**
   * The moment itself if nothing excludes it. Otherwise a later moment, and everything in between is excluded. Usually
   * that moment is the end of the excluded days, but it may be excluded as well: ask again.
   */
  freeFrom(at: Instant): Instant;
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
  const exclusion = exclusionIn(zoneOffsets(timezone), exclude, histories);
  compiled.set(exclude, { timezone, histories, exclusion });
  return exclusion;
}

/** Planning repeatedly asks about objects that it keeps in memory anyway. */
const compiled = new WeakMap<
  Exclude,
  { timezone: string | null; histories: CalendarHistory[]; exclusion: Exclusion }
>();

function historyIn(calendars: Calendars, id: string): CalendarHistory {
  const history = calendars.get(id);
  if (!history) throw new Error(`the history of the calendar ${id} is not known here`);
  return history;
}

function isSame(some: readonly CalendarHistory[], others: readonly CalendarHistory[]): boolean {
  return some.every((one, index) => one === others[index]);
}

const DAY = 86_400;

function exclusionIn(
  zone: ZoneOffsets,
  { dates }: Exclude,
  histories: readonly CalendarHistory[],
): Exclusion {
  const periods = periodsOf(dates, histories);
  let ranges: (DayRange | null)[] | undefined;
  return {
    reasonAt: (at) => {
      const day = localDay(zone, secondOf(at));
      if (!hasDay(periods.daysAt(at), day)) return null;
      ranges ??= rangesOf(dates);
      const entry = ranges.findIndex((range) => range !== null && isWithin(day, range));
      if (entry >= 0) return dates[entry] ?? null;
      return histories.find((history) => hasDay(daysAt(history, at), day))?.id ?? null;
    },
    freeFrom: (at) => {
      const second = secondOf(at);
      const free = endOfRun(zone, periods.daysAt(at), second);
      return free === second ? at : Math.min(free * 1000, periods.endAt(at) + 1);
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
interface Periods {
  daysAt(at: Instant): DaySet;
  endAt(at: Instant): Instant;
}

function periodsOf(dates: readonly string[], histories: readonly CalendarHistory[]): Periods {
  const own = daySetOfEntries(dates);
  const ends = [...new Set(histories.flatMap(changesOf))].sort((a, b) => a - b);
  const unions: DaySet[] = [];
  const periodAt = (at: Instant): number => countBefore(ends, at);
  return {
    daysAt: (at) => {
      const period = periodAt(at);
      return (unions[period] ??= unionOf([own, ...histories.map((history) => daysAt(history, at))]));
    },
    endAt: (at) => ends[periodAt(at)] ?? Infinity,
  };
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
