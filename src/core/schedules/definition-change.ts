import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../instant.ts';
import type { Definition, Schedule, Timing } from './schedule.ts';
import { expressionsOf } from '../cron/cron-expressions.ts';
import { graceMsOf } from '../time/plan-due.ts';
import { type Calendars, NO_CALENDARS } from '../exclusions/calendar-history.ts';
import { type FireTimes, type Identity, fireTimes, lastBetween } from '../time/fire-times.ts';

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

/** A reason holds for as long as the schedule is paused (schedule.ts); the next edit that enables it drops it. */
export function pausedBecause(definition: Definition, pauseReason: string): Definition {
  return { ...definition, enabled: false, pauseReason, pauseUntil: null };
}

/** Enabling a schedule, by hand or by itself, takes away what was said of its pause. */
export function withoutEndedPause(definition: Definition): Definition {
  return definition.enabled ? { ...definition, pauseReason: null, pauseUntil: null } : definition;
}

/**
 * The moment as of which a pause is over that ends by itself; null: it is not over. That moment lies just before `pauseUntil`, since a
 * version holds for what is due after it: a fire that is due at `pauseUntil` fires.
 */
export function pauseEndedAt(
  { definition: { enabled, pauseUntil }, updatedAt }: Pick<Schedule, 'definition' | 'updatedAt'>,
  now: Instant,
): Instant | null {
  if (enabled || pauseUntil === null || pauseUntil > now) return null;
  // Versions follow each other in time.
  return Math.max(pauseUntil - 1, updatedAt);
}

/** Whether an edit moves fire times: anything else leaves the cursor where it is. */
export function movesTimes(before: Timing, after: Timing): boolean {
  return MOVING.some((field) => !isDeepStrictEqual(inOrder(before[field]), inOrder(after[field])));
}

/** In whatever order several expressions are written, they fire at the same times. */
function inOrder(value: Timing[(typeof MOVING)[number]]) {
  return Array.isArray(value) ? [...expressionsOf(value)].sort() : value;
}

const MOVING = [
  'cron',
  'everySeconds',
  'at',
  'after',
  'timezone',
  'exclude',
  'startAt',
  'endAt',
  'jitterSeconds',
] as const satisfies readonly (keyof Timing)[];

/** A definition, and how far it was planned. */
interface Before {
  definition: Definition;
  nextOccurrenceAt: Instant | null;
}

/**
 * Where planning goes on under a new definition. If fire times stay, it goes on where it stood. If they move, it goes on at the first
 * occurrence after this moment: nothing fires retroactively and nothing is replayed. Only a new `at` still fires if it has passed by no
 * more than the grace. A paused schedule keeps its place, since the pause is judged when a fire is due: a fire that jitter delays beyond
 * the pause fires.
 */
export function cursorUnder(
  definition: Definition,
  before: Before | null,
  identity: Identity,
  now: Instant,
  calendars: Calendars = NO_CALENDARS,
): Cursor {
  const stays = before !== null && !movesTimes(before.definition, definition);
  // Also for an expression that this version cannot plan: what is wrong with it must not keep a caller from pausing it.
  if (stays && !definition.enabled) return { nextOccurrenceAt: before.nextOccurrenceAt, nextFireAt: null };
  const times = fireTimes(definition, identity, calendars);
  const nextOccurrenceAt = stays ? nextOf(before, times, now) : firstOf(definition, before, times, now);
  const isDue = definition.enabled && nextOccurrenceAt !== null;
  return { nextOccurrenceAt, nextFireAt: isDue ? times.dueAt(nextOccurrenceAt) : null };
}

function firstOf(
  definition: Definition,
  before: Before | null,
  times: FireTimes,
  now: Instant,
): Instant | null {
  const { at } = definition;
  const isNew = at !== null && at !== before?.definition.at && now - at <= graceMsOf(definition);
  return times.next(isNew ? Math.min(now, at - 1) : now);
}

function nextOf(
  { definition, nextOccurrenceAt: kept }: Before,
  times: FireTimes,
  now: Instant,
): Instant | null {
  if (definition.enabled) return kept;
  // Unpaused: time has passed, but for the last occurrence, whose delay may not have.
  const last = kept === null ? null : lastBetween(times, kept - 1, now);
  return last !== null && times.dueAt(last) > now ? last : times.next(now);
}
