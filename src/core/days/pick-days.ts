import { type DayNumber, type Instant, DAY_MS } from '../instant.ts';
import { type DayRule, LAST_KEPT_DAY } from '../cron/cron-wall.ts';
import { remembering } from '../cron/remembering.ts';
import type { CalendarVersions } from '../exclusions/exclusion.ts';
import type { DayPick, Every } from '../timing/timing.ts';
import { type DatesJudged, calendarVersionOf, dateAt, exists } from './local-dates.ts';
import { dayOfDate } from '../exclusions/day-set.ts';

interface Picking extends DatesJudged {
  pick: DayPick;
  /** The first day at or after one that the expressions and `every` keep; null: there is none. */
  nextCandidate: (day: DayNumber) => DayNumber | null;
}

export interface PickedDays extends DayRule {
  /** The days that it keeps of a period, in order. */
  daysOf(period: number): DayNumber[];
  /** Of periods in which edits of calendars leave no day to come: these edits, in order. */
  renumbered(): ReadonlyMap<number, readonly Renumbering[]>;
  /** When the first edit comes. */
  until: Instant;
}

/** An edit of a calendar that leaves its period no day to come. */
interface Renumbering {
  at: Instant;
  /** When the next edit comes. */
  until: Instant;
  today: DayNumber;
  /** Those up to today that are the n-th ones now. */
  days: DayNumber[];
}

/**
 * The same rule for the same days, so that a period is numbered once for all schedules that differ in their times. `name` says all but
 * the versions.
 */
export function pickRule(picking: Picking, name: string): PickedDays {
  const ofViews = rules.get(picking.versions) ?? new Map<string, PickedDays>();
  const rule = ofViews.get(name) ?? newRule(picking);
  if (ofViews.size >= KNOWN_RULES) ofViews.clear();
  ofViews.set(name, rule);
  rules.set(picking.versions, ofViews);
  return rule;
}

const rules = new WeakMap<CalendarVersions, Map<string, PickedDays>>();
const KNOWN_RULES = 256;

/**
 * Keeps the n-th days of each period. Each day is judged by what the calendars said as it began, and counts the days after it by that too:
 * an edit in the middle of a period does not number again what has passed.
 */
function newRule(picking: Picking): PickedDays {
  const { pick, nextCandidate } = picking;
  const { indexOf, startOf } = PERIODS[pick.of];
  const known = new Map<number, DayNumber[]>();
  const daysOf = (period: number): DayNumber[] => {
    let days = known.get(period);
    if (!days) {
      if (known.size >= KNOWN) known.clear();
      days = numberedOf(picking, candidatesOf(picking, period));
      known.set(period, days);
    }
    return days;
  };
  const firstFrom = (asked: DayNumber): DayNumber | null => {
    for (let day: DayNumber | null = asked; ;) {
      day = nextCandidate(day);
      if (day === null || day > LAST_KEPT_DAY) return null;
      const period = indexOf(day);
      const found = daysOf(period).find((one) => one >= asked);
      if (found !== undefined) return found;
      day = startOf(period + 1);
    }
  };
  let renumbered: ReturnType<PickedDays['renumbered']> | undefined;
  return {
    // Each expression asks.
    firstFrom: remembering(firstFrom),
    daysOf,
    until: picking.versions.endOf(picking.firstVersion),
    renumbered: () => (renumbered ??= renumberedBy(picking)),
  };
}

/** Questions usually come in order. */
const KNOWN = 16;

function candidatesOf({ pick, zone, nextCandidate }: Picking, period: number): DayNumber[] {
  const { startOf } = PERIODS[pick.of];
  const candidates: DayNumber[] = [];
  const end = startOf(period + 1);
  for (let day = nextCandidate(startOf(period)); day !== null && day < end; day = nextCandidate(day + 1))
    if (exists(zone, day)) candidates.push(day);
  return candidates;
}

function numberedOf(picking: Picking, days: readonly DayNumber[]): DayNumber[] {
  const { versions } = picking;
  const { nth } = picking.pick;
  const found: DayNumber[] = [];
  let before = 0;
  let after = 0;
  let countedBy = -1;
  days.forEach((day, index) => {
    const version = calendarVersionOf(picking, day);
    // How many are left from this day on.
    if (version !== countedBy) after = countLeft(versions, version, days.slice(index));
    countedBy = version;
    if (versions.has(version, day)) return;
    if (nth.includes(before + 1) || nth.includes(-after)) found.push(day);
    before += 1;
    after -= 1;
  });
  return found;
}

function renumberedBy(picking: Picking): Map<number, Renumbering[]> {
  const { pick, zone, versions, firstVersion } = picking;
  const known = new Map<number, { all: DayNumber[]; begun: DayNumber[]; found: Renumbering[] }>();
  const newPeriod = (period: number) => {
    const all = candidatesOf(picking, period);
    return {
      all,
      begun: all.filter((day) => !versions.has(calendarVersionOf(picking, day), day)),
      found: [],
    };
  };
  for (let version = firstVersion + 1; versions.endOf(version - 1) < Infinity; version += 1) {
    const [at, until] = [versions.endOf(version - 1), versions.endOf(version)];
    const today = dateAt(zone, at);
    const period = PERIODS[pick.of].indexOf(today);
    const { all, begun, found } = known.get(period) ?? newPeriod(period);
    known.set(period, { all, begun, found });
    const past = begun.filter((day) => day <= today);
    const ahead = all.filter((day) => day > today && !versions.has(version, day));
    const left = [...past, ...ahead];
    const days = left.filter((_, index) => pick.nth.some((n) => index === (n > 0 ? n - 1 : left.length + n)));
    if (days.every((day) => day <= today)) found.push({ at, until, today, days });
  }
  return new Map([...known].flatMap(([period, { found }]) => (found.length > 0 ? [[period, found]] : [])));
}

function countLeft(versions: CalendarVersions, version: number, days: readonly DayNumber[]): number {
  return days.filter((day) => !versions.has(version, day)).length;
}

/** Keeps the days of each n-th period, from a date on. By arithmetic: no number of periods costs more than one. */
export function everyRule({ n, unit, from }: Every): DayRule {
  const first = dayOfDate(from);
  if (first === null) throw new Error(`every.from is no date: ${from}`);
  const { indexOf, startOf } = PERIODS[unit];
  const base = indexOf(first);
  return {
    firstFrom: (asked) => {
      const day = Math.max(asked, first);
      const past = (indexOf(day) - base) % n;
      return past === 0 ? day : startOf(indexOf(day) + n - past);
    },
  };
}

interface Periods {
  indexOf: (day: DayNumber) => number;
  /** Its first day. */
  startOf: (index: number) => DayNumber;
}

const MONTHS: Periods = {
  indexOf: (day) => {
    const date = new Date(day * DAY_MS);
    return date.getUTCFullYear() * 12 + date.getUTCMonth();
  },
  startOf: (index) => Date.UTC(Math.floor(index / 12), index % 12, 1) / DAY_MS,
};

const monthsTogether = (count: number): Periods => ({
  indexOf: (day) => Math.floor(MONTHS.indexOf(day) / count),
  startOf: (index) => MONTHS.startOf(index * count),
});

/** Weeks are those of ISO 8601: from Monday on. 1970-01-01 was a Thursday. */
export const PERIODS: Record<Every['unit'] | 'quarter' | 'year', Periods> = {
  day: { indexOf: (day) => day, startOf: (index) => index },
  week: { indexOf: (day) => Math.floor((day + 3) / 7), startOf: (index) => index * 7 - 3 },
  month: MONTHS,
  quarter: monthsTogether(3),
  year: monthsTogether(12),
};
