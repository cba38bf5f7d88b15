import { isDeepStrictEqual } from 'node:util';
import type { Instant } from './instant.ts';
import type { Definition, Timing } from './schedule.ts';
import { type FireTimes, type Identity, fireTimes } from './time/fire-times.ts';

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
export function movesTimes(before: Timing, after: Timing): boolean {
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
] as const satisfies readonly (keyof Timing)[];

/** A definition, and how far it was planned. */
export interface Before {
  definition: Definition;
  nextOccurrenceAt: Instant | null;
}

/**
 * Where planning goes on under a new definition. Where fire times stay, where it stood. Where they move, at the first occurrence
 * after this moment: nothing fires retroactively and nothing is replayed; only an `at` that is new fires when it has
 * passed by no more than the grace. A pause keeps its place, since what jitter delays beyond it is judged when it is due.
 */
export function cursorUnder(
  definition: Definition,
  before: Before | null,
  identity: Identity,
  now: Instant,
): Cursor {
  const { enabled, at, graceSeconds } = definition;
  const stays = before !== null && !movesTimes(before.definition, definition);
  if (!enabled) return { nextOccurrenceAt: stays ? before.nextOccurrenceAt : null, nextFireAt: null };
  const times = fireTimes(definition, identity);
  if (stays) {
    const kept = cursorAt(before.nextOccurrenceAt, times);
    const isAhead = kept.nextFireAt !== null && kept.nextFireAt > now;
    return before.definition.enabled || isAhead ? kept : cursorAt(times.next(now), times);
  }
  const isNew = at !== null && at !== before?.definition.at && now - at <= graceSeconds * 1000;
  return cursorAt(times.next(isNew ? Math.min(now, at - 1) : now), times);
}

function cursorAt(nextOccurrenceAt: Instant | null, times: FireTimes): Cursor {
  return { nextOccurrenceAt, nextFireAt: nextOccurrenceAt === null ? null : times.dueAt(nextOccurrenceAt) };
}
