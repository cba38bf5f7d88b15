import { EARLIEST, LATEST } from '../instant.ts';
import { readDateEntry } from '../exclusions/day-set.ts';
import type { Definition, Handoff } from './schedule.ts';
import {
  type Timing,
  calendarIdsOf,
  CATCH_UPS,
  DEFAULT_TIMING,
  EVERY_UNITS,
  ON_EXCLUDED,
  PICK_PERIODS,
  WEEKDAYS,
} from '../timing/timing.ts';

/** The content of a version's definition column: everything but the payload, which is kept as the client's own text. */
export type StoredDefinition = Omit<Definition, 'payload'>;

/** The definition of a version; one that an earlier version of firelock wrote lacks fields that came later. */
export function readDefinition(stored: StoredDefinition, payload: string | null): Definition {
  return { ...SINCE_ADDED, ...stored, payload };
}

const SINCE_ADDED = {
  ...DEFAULT_TIMING,
  expect: null,
  observe: null,
  expiresAfterSeconds: null,
} satisfies Partial<Definition>;

/** When a schedule fires, as its row holds it for the planner: an absent field has its default. */
export function timingText(timing: Pick<Timing, 'cron' | 'timezone'> & Partial<Timing>): string {
  const said = TIMING_FIELDS.filter((field) => {
    const value = timing[field];
    return value !== undefined && value !== UNSAID[field];
  });
  return JSON.stringify(timing, [...said, ...PARTS]);
}

/** The fields of what is not a single value. */
const PARTS = [
  ...['scheduleId', 'on', 'dates', 'calendars', 'weekdays', 'n', 'unit', 'from', 'of', 'nth'],
  ...['since', 'date', 'reason', 'fires', 'newest', 'isLate'],
];

/** @throws Error if this version writes no such text: a later version, or another program, wrote it */
export function readTiming(text: string): Timing {
  const said = fieldsOf(JSON.parse(text));
  for (const [field, value] of Object.entries(said)) {
    if (!(SHAPES[field]?.(value) ?? false)) throw new Error(`its timing has ${field}, which cannot be planned by`);
  }
  const timing = { ...UNSAID, ...said };
  const kinds = [timing.cron, timing.everySeconds, timing.at, timing.after].filter((kind) => kind !== null);
  if (kinds.length > 1) throw new Error('its timing is of no kind that can be planned');
  return timing;
}

const isMoment = (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= EARLIEST && value <= LATEST;
const isCount = (min: number) => (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min;
const isText = (value: unknown): value is string => typeof value === 'string';
const isExclude = (value: unknown) => {
  const { dates, calendars, weekdays = [] } = fieldsOf(value);
  if (!Array.isArray(dates) || !Array.isArray(calendars) || !Array.isArray(weekdays)) return false;
  return (
    calendars.every(isText) &&
    weekdays.every((one) => WEEKDAYS.some((known) => known === one)) &&
    dates.every((one) => isText(one) && typeof readDateEntry(one) !== 'string')
  );
};
const isDate = (value: unknown) => isText(value) && typeof readDateEntry(value) !== 'string';
const isEvery = (value: unknown) => {
  const { n, unit, from } = fieldsOf(value);
  return isCount(1)(n) && EVERY_UNITS.some((known) => known === unit) && isDate(from);
};
const isPick = (value: unknown) => {
  const { of, nth } = fieldsOf(value);
  return PICK_PERIODS.some((known) => known === of) && Array.isArray(nth) && nth.every(Number.isSafeInteger);
};
const isSeries = (value: unknown) => Array.isArray(value) && value.length === 3 && value.every(Number.isSafeInteger);
const isKept = (value: unknown) => {
  const { since, dates, newest = EARLIEST } = fieldsOf(value);
  if (!isMoment(since) || !isMoment(newest) || !Array.isArray(dates)) return false;
  return dates.every((one) => {
    const { date, reason, fires } = fieldsOf(one);
    return isDate(date) && isText(reason) && Array.isArray(fires) && fires.every(isSeries);
  });
};
const SHAPES: Record<string, ((value: unknown) => boolean) | undefined> = {
  cron: (value) => isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText)),
  everySeconds: isCount(1),
  at: isMoment,
  after: (value) => typeof fieldsOf(value)['scheduleId'] === 'string',
  timezone: isText,
  exclude: isExclude,
  onExcluded: (value) => ON_EXCLUDED.some((known) => known === value),
  every: isEvery,
  pick: isPick,
  kept: isKept,
  startAt: isMoment,
  endAt: isMoment,
  jitterSeconds: isCount(0),
  catchUp: (value) => CATCH_UPS.some((known) => known === value),
  catchUpLimit: isCount(0),
  graceSeconds: isCount(0),
};

const UNSAID: Timing = { ...DEFAULT_TIMING, cron: null, everySeconds: null, at: null, after: null };
const TIMING_FIELDS = [...Object.keys(UNSAID), 'kept'] as (keyof Timing)[];

/** The calendars that it names. None if it cannot be read: then it cannot be planned either. */
export function calendarIdsIn(timing: string): readonly string[] {
  if (!timing.includes('"calendars"')) return [];
  try {
    return calendarIdsOf(readTiming(timing));
  } catch {
    return [];
  }
}

/** Whether what is stored has everything that a handoff needs; only another program can store something that has not. */
export function canBeHandedOff(stored: object): stored is Handoff {
  const { target, retry, timeoutSeconds, delivery, completion, completionTimeoutSeconds } = fieldsOf(stored);
  const { maxAttempts, minBackoffSeconds, maxBackoffSeconds } = fieldsOf(retry);
  const numbers = [timeoutSeconds, completionTimeoutSeconds, maxAttempts, minBackoffSeconds, maxBackoffSeconds];
  return (
    [fieldsOf(target)['type'], delivery, completion].every(isText) &&
    numbers.every((value) => typeof value === 'number')
  );
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
