import { DAY_MS, type DayNumber } from '../instant.ts';
import type { DayRule } from '../cron/cron-wall.ts';
import { dayOfDate } from '../exclusions/date-entries.ts';
import type { Every } from '../timing/day-rules.ts';

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
