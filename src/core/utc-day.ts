import { EARLIEST, type Instant } from './instant.ts';

/** History is kept by the UTC day on which runs ended: a day is represented by its first moment. */
export const DAY_MS = 86_400_000;

/** A day of the calendar, without a zone: the number of days since 1970-01-01. */
export type DayNumber = number;

export function dayOf(at: Instant): Instant {
  return Math.max(EARLIEST, Math.floor(at / DAY_MS) * DAY_MS);
}
