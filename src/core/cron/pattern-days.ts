import { DAY_MS, type DayNumber } from '../time/utc-day.ts';
import type { DayPattern } from './day-pattern.ts';

/** The days that an expression selects, and the last month that was computed: questions usually come in order. */
export interface Days {
  pattern: DayPattern;
  /** Bit 0 is January. */
  months: number;
  /** The present month: its first day, the first day after it, and its selected days (bit 0 is the first). */
  first: DayNumber;
  end: DayNumber;
  mask: number;
}

/** Every month, with its weekdays, recurs within 40 years, also over century years: after that, there is no match. */
const MONTHS_TO_SCAN = 41 * 12;

export const daysOfPattern = (pattern: DayPattern, months: number): Days => ({
  pattern,
  months,
  first: 0,
  end: 0,
  mask: 0,
});

/** The first selected day at or after one; null: there never is one. */
export function nextDay(days: Days, from: DayNumber): DayNumber | null {
  if (from < days.first || from >= days.end) standOnMonthOf(days, from);
  let left = days.mask >>> (from - days.first);
  if (left !== 0) return from + trailingZeros(left);
  const date = new Date(days.first * DAY_MS);
  const start = date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (let month = start + 1; month <= start + MONTHS_TO_SCAN; month += 1) {
    if (((days.months >>> (month % 12)) & 1) === 0) continue;
    standOn(days, Math.floor(month / 12), month % 12);
    left = days.mask;
    if (left !== 0) return days.first + trailingZeros(left);
  }
  return null;
}

/** The number must not be 0. */
export const trailingZeros = (bits: number): number => 31 - Math.clz32(bits & -bits);

function standOnMonthOf(days: Days, day: DayNumber): void {
  const date = new Date(day * DAY_MS);
  standOn(days, date.getUTCFullYear(), date.getUTCMonth());
}

function standOn(days: Days, year: number, month: number): void {
  days.first = Date.UTC(year, month, 1) / DAY_MS;
  days.end = Date.UTC(year, month + 1, 1) / DAY_MS;
  // 1970-01-01 was a Thursday.
  const weekday = (((days.first + 4) % 7) + 7) % 7;
  days.mask = (days.months >>> month) & 1 ? days.pattern(days.end - days.first, weekday) : 0;
}
