import { DAY_MS, type DayNumber } from '../instant.ts';

/** Both ends included. */
export interface DayRange {
  first: DayNumber;
  last: DayNumber;
}

/** The most dates and ranges that a schedule, or a calendar, names. */
export const MAX_DATES = 2000;

/** Reads `2026-12-24`, or `2026-12-24/2027-01-02`. For any other text, answers its fault. */
export function readDateEntry(text: string): DayRange | string {
  const [, from, to = from] = ENTRY.exec(text) ?? [];
  if (from === undefined || to === undefined) return NO_ENTRY;
  const [first, last] = [dayOfDate(from), dayOfDate(to)];
  if (first === null) return `names a day that does not exist: ${from}`;
  if (last === null) return `names a day that does not exist: ${to}`;
  if (first < FIRST_DAY || last < FIRST_DAY || first > LAST_DAY || last > LAST_DAY)
    return 'must lie between 2000 and 2100';
  return first <= last ? { first, last } : `ends before it begins: ${to} is earlier than ${from}`;
}

const ENTRY = /^(\d{4}-\d\d-\d\d)(?:\/(\d{4}-\d\d-\d\d))?$/;
const NO_ENTRY =
  'must be a date such as 2026-12-24, or a range such as 2026-12-24/2027-01-02, whose both ends belong to it';
export const FIRST_DAY: DayNumber = Date.UTC(2000, 0, 1) / DAY_MS;
export const LAST_DAY: DayNumber = Date.UTC(2100, 11, 31) / DAY_MS;

/**
 * Null: there is no such day. Computed by arithmetic: writing an instant and comparing the text takes ten times as
 * long, and there are thousands.
 */
export function dayOfDate(date: string): DayNumber | null {
  const [year, month, day] = [Number(date.slice(0, 4)), Number(date.slice(5, 7)), Number(date.slice(8, 10))];
  if (month < 1 || month > 12 || day < 1 || day > lengthOf(year, month)) return null;
  return Date.UTC(year, month - 1, day) / DAY_MS;
}

/** `2026-12-24` */
export function dateOfDay(day: DayNumber): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

function lengthOf(year: number, month: number): number {
  if (month !== 2) return 30 + ((month + (month >> 3)) & 1);
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}
