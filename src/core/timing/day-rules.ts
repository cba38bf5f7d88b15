import type { Instant } from '../instant.ts';

/** Local days, in the schedule's zone, on which it does not fire. Never both empty: that is null. */
export interface Exclude {
  /** Dates and ranges of dates, such as `2026-12-24` and `2026-12-24/2027-01-02`. */
  readonly dates: readonly string[];
  /** Ids of calendars. */
  readonly calendars: readonly string[];
  /** Absent: none. */
  readonly weekdays?: readonly Weekday[];
}

/** Monday first, as in ISO 8601. */
export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** What becomes of the fires of an excluded day: not made, or moved to the nearest day that is not excluded. */
export const ON_EXCLUDED = ['skip', 'next', 'previous'] as const;
export type OnExcluded = (typeof ON_EXCLUDED)[number];

export const EVERY_UNITS = ['day', 'week', 'month'] as const;

/** It fires only in days, ISO weeks or months that lie a multiple of `n` after the one of `from`, and never before `from`. */
export interface Every {
  readonly n: number;
  readonly unit: (typeof EVERY_UNITS)[number];
  /** A local date: `2026-01-05`. */
  readonly from: string;
}

export const PICK_PERIODS = ['week', 'month', 'quarter', 'year'] as const;
export type PickPeriod = (typeof PICK_PERIODS)[number];

/** Of the days of each period on which it would fire, only the n-th ones; negative: from the end. */
export interface DayPick {
  readonly of: PickPeriod;
  readonly nth: readonly number[];
}

/**
 * What was decided for some dates under the definition before, and stays so (core/time/kept-dates.ts). firelock writes it when an
 * edit moves fire times; no caller sees it.
 */
export interface KeptDates {
  /** The moment of the edit. */
  readonly since: Instant;
  readonly dates: readonly KeptDate[];
  /** The newest fire before it, of a definition with `pick`: its period has had one. Absent: there was none. */
  readonly newest?: Instant;
}

export interface KeptDate {
  readonly date: string;
  /** What excluded it. */
  readonly reason: string;
  /** It is picked by that edit once it had begun (core/days/late-days.ts), which says its fires, and the next edit decides anew. */
  readonly isLate?: boolean;
  /** Its fires that are left: first instant, step in ms and count of each series. The date has no others. */
  readonly fires: readonly (readonly [Instant, number, number])[];
}
