import { isDeepStrictEqual } from 'node:util';
import type { Instant } from './instant.ts';
import type { Definition, Timing } from './schedule.ts';
import { type Identity, fireTimes, firstDueAfter } from './time/fire-times.ts';

/** Where a schedule's planning stands. */
export interface Cursor {
  /** The first occurrence that is not planned yet; null: none is to be. */
  nextOccurrenceAt: Instant | null;
  /** When that is due. */
  nextFireAt: Instant | null;
}

export function sameDefinition(a: Definition, b: Definition): boolean {
  return a.payload === b.payload && isDeepStrictEqual({ ...a, payload: null }, { ...b, payload: null });
}

/** Whether an edit moves fire times: anything else leaves the cursor where it is. */
export function movesFireTimes(before: Definition, after: Definition): boolean {
  return MOVING.some((field) => !isDeepStrictEqual(before[field], after[field]));
}

const MOVING = [
  'cron',
  'everySeconds',
  'at',
  'after',
  'timezone',
  'startAt',
  'endAt',
  'jitterSeconds',
  'enabled',
] as const satisfies readonly (keyof Definition)[];

/**
 * Where planning begins under a new definition: at the first occurrence that is due after this moment. Nothing fires retroactively and
 * nothing is replayed; only an `at` that is new is fired when it has passed by no more than the grace.
 */
export function firstCursor(
  definition: Definition,
  before: Definition | null,
  identity: Identity,
  now: Instant,
): Cursor {
  const { enabled, at, graceSeconds, jitterSeconds } = definition;
  if (!enabled) return NOTHING;
  const times = fireTimes(definition, identity);
  if (at !== null && at !== before?.at && now - at <= graceSeconds * 1000) {
    return cursorAt(times.next(at - 1), definition, identity);
  }
  return cursorAt(firstDueAfter(times, jitterSeconds, now), definition, identity);
}

export function cursorAt(nextOccurrenceAt: Instant | null, timing: Timing, identity: Identity): Cursor {
  if (nextOccurrenceAt === null) return NOTHING;
  return { nextOccurrenceAt, nextFireAt: fireTimes(timing, identity).dueAt(nextOccurrenceAt) };
}

const NOTHING: Cursor = { nextOccurrenceAt: null, nextFireAt: null };
