import { DAY_MS } from '../time/utc-day.ts';

/** A day of the calendar, without a zone: the number of days since 1970-01-01. */
export type Day = number;

/** Both ends included. */
export interface DayRange {
  first: Day;
  last: Day;
}

/** A schedule names at most that many dates and ranges, and so does a calendar. */
export const MAX_DATES = 2000;

/** Reads `2026-12-24`, or `2026-12-24/2027-01-02`. Answers what is wrong with it where it is neither. */
export function readDateEntry(text: string): DayRange | string {
  const [, from, to = from] = ENTRY.exec(text) ?? [];
  if (from === undefined || to === undefined) return NO_ENTRY;
  const [first, last] = [dayOf(from), dayOf(to)];
  if (first === null) return `names a day that does not exist: ${from}`;
  if (last === null) return `names a day that does not exist: ${to}`;
  if (first < FIRST_DAY || last < FIRST_DAY || first > LAST_DAY || last > LAST_DAY)
    return 'must lie between 2000 and 2100';
  return first <= last ? { first, last } : `ends before it begins: ${to} is earlier than ${from}`;
}

const ENTRY = /^(\d{4}-\d\d-\d\d)(?:\/(\d{4}-\d\d-\d\d))?$/;
const NO_ENTRY =
  'must be a date such as 2026-12-24, or a range such as 2026-12-24/2027-01-02, whose both ends belong to it';
const FIRST_DAY: Day = Date.UTC(2000, 0, 1) / DAY_MS;
const LAST_DAY: Day = Date.UTC(2100, 11, 31) / DAY_MS;

/** Null: there is no such day. `Date.parse` alone takes 30 February for 2 March. */
function dayOf(date: string): Day | null {
  const at = Date.parse(`${date}T00:00Z`);
  if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(date)) return null;
  return at / DAY_MS;
}
