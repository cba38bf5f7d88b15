import type { Cron } from '../cron/cron-fields.ts';
import type { Instant } from '../instant.ts';
import { RUN_ENDS } from '../run-end.ts';

/** What happens to *missed* fires, which are late by more than the grace when they are planned. */
export const CATCH_UPS = ['skip', 'latest', 'all'] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** The events of another schedule that can be followed: ends of its runs, or that it is late. */
export const FOLLOWED_ENDS = [...RUN_ENDS, 'late'] as const;
export type FollowedEnd = (typeof FOLLOWED_ENDS)[number];

/** The end of another schedule's run as a trigger. */
export interface After {
  /** `billing.*`: of every schedule whose id begins so and that is not itself an `after` schedule; `*`: of each of all. */
  scheduleId: string;
  on: FollowedEnd[];
}

/** When a schedule fires. One of `cron`, `everySeconds`, `at` and `after` is not null, except of a heartbeat. */
export interface Timing {
  /** One expression, or several, each of which makes it fire. */
  cron: Cron | null;
  everySeconds: number | null;
  at: Instant | null;
  after: After | null;
  /** Of `cron`, and of the days of `exclude`; null: UTC. */
  timezone: string | null;
  exclude: Exclude | null;
  onExcluded: OnExcluded;
  every: Every | null;
  pick: DayPick | null;
  /** Absent: nothing is kept. */
  kept?: KeptDates;
  /** Inclusive. */
  startAt: Instant | null;
  /** Exclusive. */
  endAt: Instant | null;
  jitterSeconds: number;
  catchUp: CatchUp;
  /** `all` fires at most this many of the fires that were missed in one outage: the newest. */
  catchUpLimit: number;
  /** A fire that is planned at most this late is on time. */
  graceSeconds: number;
}

/** The calendars that a schedule names, which its fire times depend on. */
export function calendarIdsOf({ exclude }: Pick<Timing, 'exclude'>): readonly string[] {
  return exclude?.calendars ?? [];
}

/** What fire times depend on beside the timing: hashed fields and jitter on the id, intervals on the creation. */
export interface Identity {
  id: string;
  createdAt: Instant;
}

/** The defaults of a schedule, beside its kind. */
export const DEFAULT_TIMING = {
  timezone: null,
  exclude: null,
  onExcluded: 'skip',
  every: null,
  pick: null,
  startAt: null,
  endAt: null,
  jitterSeconds: 0,
  catchUp: 'latest',
  catchUpLimit: 100,
  graceSeconds: 60,
} as const satisfies Partial<Timing>;

/** It has no fire times, and follows nothing: its job only reports now and then. */
export function isHeartbeat({
  cron,
  everySeconds,
  at,
  after,
}: Pick<Timing, 'cron' | 'everySeconds' | 'at' | 'after'>): boolean {
  return [cron, everySeconds, at, after].every((kind) => kind === null);
}

/**
 * The beginning that the ids of all schedules have which an `after` with this `scheduleId` follows: `` of `*`, `billing.` of `billing.*`;
 * null: it follows the one schedule of this id.
 */
export function followedPrefix(scheduleId: string): string | null {
  return scheduleId.endsWith('*') ? scheduleId.slice(0, -1) : null;
}

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
  /** It is picked by that edit once it had begun (core/days/kept-fires.ts), which says its fires, and the next edit decides anew. */
  readonly isLate?: boolean;
  /** Its fires that are left: first instant, step in ms and count of each series. The date has no others. */
  readonly fires: readonly (readonly [Instant, number, number])[];
}
