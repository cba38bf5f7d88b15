import type { Calendar, Day } from './calendar.ts';

/** Finds the first selected day at or after one; null: there is none, ever. */
export type DayFinder = (from: Day) => Day | null;

const DAY_MS = 86_400_000;
/** Every month, with its weekdays, recurs within 40 years, whatever century years do in between: after that, never. */
const MONTHS_TO_SCAN = 41 * 12;

/** `months`: bit 0 is January. Stands on the month it answered last, since questions come in order. */
export function dayFinder(calendar: Calendar, months: number): DayFinder {
  // Days of the month at hand that are selected: bit 0 is `first`, the day after its last is `end`.
  let first: Day = 0;
  let end: Day = 0;
  let mask = 0;

  const standOn = (year: number, month: number): void => {
    first = Date.UTC(year, month, 1) / DAY_MS;
    end = Date.UTC(year, month + 1, 1) / DAY_MS;
    // 1970-01-01 was a Thursday.
    mask = (months >>> month) & 1 ? calendar(end - first, (((first + 4) % 7) + 7) % 7) : 0;
  };

  return (from) => {
    if (from < first || from >= end) {
      const date = new Date(from * DAY_MS);
      standOn(date.getUTCFullYear(), date.getUTCMonth());
    }
    let left = mask >>> (from - first);
    if (left !== 0) return from + trailingZeros(left);
    const date = new Date(first * DAY_MS);
    const start = date.getUTCFullYear() * 12 + date.getUTCMonth();
    for (let month = start + 1; month <= start + MONTHS_TO_SCAN; month += 1) {
      if (((months >>> (month % 12)) & 1) === 0) continue;
      standOn(Math.floor(month / 12), month % 12);
      left = mask;
      if (left !== 0) return first + trailingZeros(left);
    }
    return null;
  };
}

/** Of a number that is not 0. */
export const trailingZeros = (bits: number): number => 31 - Math.clz32(bits & -bits);
