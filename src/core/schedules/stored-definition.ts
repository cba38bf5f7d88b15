import { EARLIEST, LATEST } from '../instant.ts';
import { readDateEntry } from '../exclusions/date-entries.ts';
import {
  CATCH_UPS,
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_TIMING,
  type Definition,
  type Handoff,
  type HttpTarget,
  type PullTarget,
  type Target,
  type Timing,
  calendarIdsOf,
} from './schedule.ts';

/** Fields that came after the first version. */
type Later =
  | Exclude<keyof Timing, 'cron' | 'timezone'>
  | 'overlap'
  | 'delivery'
  | 'completion'
  | 'completionTimeoutSeconds'
  | 'pauseReason'
  | 'limit'
  | 'pauseUntil'
  | 'pauseAfterFailures'
  | 'successWithinSeconds';
type LaterCalls = 'lookup' | 'cancel' | 'secret';
type StoredTarget = (Omit<HttpTarget, LaterCalls> & Partial<Pick<HttpTarget, LaterCalls>>) | PullTarget;

/** The content of a version's definition column: everything but the payload, which is kept as the client's own text. */
export type StoredDefinition = Omit<Definition, 'payload' | 'target' | Later> &
  Partial<Pick<Definition, Later>> & { target: StoredTarget };

const DEFAULTS: Pick<Definition, Later> = {
  ...DEFAULT_TIMING,
  everySeconds: null,
  at: null,
  after: null,
  overlap: 'allow',
  delivery: 'atLeastOnce',
  completion: 'response',
  completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  pauseReason: null,
  limit: null,
  pauseUntil: null,
  pauseAfterFailures: null,
  successWithinSeconds: null,
};

/** A stored definition as this version knows it; a field that an older version did not write gets that version's behaviour. */
export function readDefinition(stored: StoredDefinition, payload: string | null): Definition {
  return {
    ...DEFAULTS,
    ...stored,
    target: readTarget(stored.target),
    payload,
  };
}

/** The part of it that an attempt needs: it is read for each run, so nothing else is parsed. */
export function readHandoff(stored: StoredDefinition, payload: string | null): Handoff {
  return {
    target: readTarget(stored.target),
    retry: stored.retry,
    timeoutSeconds: stored.timeoutSeconds,
    delivery: stored.delivery ?? DEFAULTS.delivery,
    completion: stored.completion ?? DEFAULTS.completion,
    completionTimeoutSeconds: stored.completionTimeoutSeconds ?? DEFAULTS.completionTimeoutSeconds,
    payload,
  };
}

function readTarget(stored: StoredTarget): Target {
  return stored.type === 'http' ? { secret: null, lookup: null, cancel: null, ...stored } : stored;
}

/** When a schedule fires, as its row holds it for the planner: an absent field has its default. */
export function timingText(timing: Pick<Timing, 'cron' | 'timezone'> & Partial<Timing>): string {
  const said = TIMING_FIELDS.filter((field) => {
    const value = timing[field];
    return value !== undefined && value !== UNSAID[field];
  });
  return JSON.stringify(timing, [...said, 'scheduleId', 'on', 'dates', 'calendars']);
}

/** @throws Error if this version writes no such text: a later version, or another program, wrote it */
export function readTiming(text: string): Timing {
  const said = fieldsOf(JSON.parse(text));
  for (const [field, value] of Object.entries(said)) {
    if (!(SHAPES[field]?.(value) ?? false))
      throw new Error(`its timing has ${field}, which cannot be planned by`);
  }
  const timing = { ...UNSAID, ...said };
  const kinds = [timing.cron, timing.everySeconds, timing.at, timing.after].filter((kind) => kind !== null);
  if (kinds.length !== 1) throw new Error('its timing is of no kind that can be planned');
  return timing;
}

const isMoment = (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= EARLIEST && value <= LATEST;
const isCount = (min: number) => (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min;
const isText = (value: unknown): value is string => typeof value === 'string';
const isExclude = (value: unknown) => {
  const { dates, calendars } = fieldsOf(value);
  if (!Array.isArray(dates) || !Array.isArray(calendars)) return false;
  return (
    calendars.every(isText) && dates.every((one) => isText(one) && typeof readDateEntry(one) !== 'string')
  );
};
const SHAPES: Record<string, ((value: unknown) => boolean) | undefined> = {
  cron: (value) => isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText)),
  everySeconds: isCount(1),
  at: isMoment,
  after: (value) => typeof fieldsOf(value)['scheduleId'] === 'string',
  timezone: isText,
  exclude: isExclude,
  startAt: isMoment,
  endAt: isMoment,
  jitterSeconds: isCount(0),
  catchUp: (value) => CATCH_UPS.some((known) => known === value),
  catchUpLimit: isCount(0),
  graceSeconds: isCount(0),
};

const UNSAID: Timing = { ...DEFAULT_TIMING, cron: null, everySeconds: null, at: null, after: null };
const TIMING_FIELDS = Object.keys(UNSAID) as (keyof Timing)[];

/** The calendars that it names. None if it cannot be read: then it cannot be planned either. */
export function calendarIdsIn(timing: string): readonly string[] {
  if (!timing.includes('"calendars"')) return [];
  try {
    return calendarIdsOf(readTiming(timing));
  } catch {
    return [];
  }
}

/** Whether a stored definition has everything that a handoff needs; only another program can store one that has not. */
export function canBeHandedOff(stored: unknown): boolean {
  const definition = fieldsOf(stored);
  const retry = fieldsOf(definition['retry']);
  const numbers = [
    definition['timeoutSeconds'],
    retry['maxAttempts'],
    retry['minBackoffSeconds'],
    retry['maxBackoffSeconds'],
  ];
  return (
    typeof fieldsOf(definition['target'])['type'] === 'string' &&
    numbers.every((value) => typeof value === 'number')
  );
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
