import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../instant.ts';
import type { Definition, Schedule } from '../schedules/schedule.ts';
import type { Identity, Timing } from '../timing/timing.ts';
import { expressionsOf } from '../cron/cron-fields.ts';
import { datesAtEdit } from './kept-dates.ts';
import { graceMsOf } from './plan-due.ts';
import type { PlannedUpTo } from './cursors.ts';
import { type Calendars, NO_CALENDARS } from '../exclusions/exclusion.ts';
import { type FireTimes, fireTimes, lastBetween } from './fire-times.ts';

/** Where a schedule's planning stands. */
export interface Cursor {
  /** The first occurrence that is not planned yet; null: none is left. */
  nextOccurrenceAt: Instant | null;
  /** When that occurrence is due. */
  nextFireAt: Instant | null;
}

/** The name that firelock writes versions under. */
export const BY_FIRELOCK = 'firelock';

export function sameDefinition(a: Definition, b: Definition): boolean {
  // No caller sees `kept`.
  const apart = { payload: null, kept: null };
  return a.payload === b.payload && isDeepStrictEqual({ ...a, ...apart }, { ...b, ...apart });
}

/** A reason applies as long as the schedule is paused (schedule.ts); the next edit that enables it removes the reason. */
export function pausedBecause(definition: Definition, pauseReason: string): Definition {
  return { ...definition, enabled: false, pauseReason, pauseUntil: null };
}

/** Enabling a schedule, by a caller or by itself, removes the reason and the end of its pause. */
export function withoutEndedPause(definition: Definition): Definition {
  return definition.enabled ? { ...definition, pauseReason: null, pauseUntil: null } : definition;
}

/**
 * The moment as of which a pause ends by itself; null: it has not ended. That moment lies just before `pauseUntil`,
 * since a version applies to what is due after it: a fire that is due at `pauseUntil` fires.
 */
export function pauseEndedAt(
  { definition: { enabled, pauseUntil }, updatedAt }: Pick<Schedule, 'definition' | 'updatedAt'>,
  now: Instant,
): Instant | null {
  if (enabled || pauseUntil === null || pauseUntil > now) return null;
  // Versions follow each other in time.
  return Math.max(pauseUntil - 1, updatedAt);
}

/** Whether an edit moves fire times: other edits leave the cursor where it is. */
export function movesTimes(before: Timing, after: Timing): boolean {
  return MOVING.some((field) => !isDeepStrictEqual(inOrder(before[field]), inOrder(after[field])));
}

/** The order of several expressions does not change their fire times. */
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
  'onExcluded',
  'every',
  'pick',
  'startAt',
  'endAt',
  'jitterSeconds',
] as const satisfies readonly (keyof Timing)[];

/** The new definition with what it has to keep of the one before, and the fires that the edit moved to moments that have passed. */
export function withDatesKept(
  definition: Definition,
  current: Pick<Schedule, 'definition' | 'id' | 'createdAt'> & PlannedUpTo,
  now: Instant,
  calendars: Calendars,
): { definition: Definition; owed: Instant[] } {
  const { kept: _, ...rest } = definition;
  const { definition: before, id, createdAt, updatedAt } = current;
  if (!movesTimes(before, definition))
    return { definition: before.kept ? { ...rest, kept: before.kept } : rest, owed: [] };
  try {
    const identity = { id, createdAt };
    const moment = { editedAt: updatedAt, planned: current, now };
    const { kept, owed } = datesAtEdit({ before, after: rest, identity, ...moment, calendars });
    return { definition: kept ? { ...rest, kept } : rest, owed };
  } catch {
    // The definition before cannot be planned: this edit mends it.
    return { definition: rest, owed: [] };
  }
}

/** A definition, and how far it was planned. */
interface Before {
  definition: Definition;
  nextOccurrenceAt: Instant | null;
}

/**
 * Where planning goes on under a new definition. If fire times stay, it goes on where it stood. If they move, it goes
 * on at the first occurrence after this moment: nothing fires retroactively and nothing is replayed. Only a new `at`
 * still fires if it has passed by no more than the grace. A paused schedule keeps its place, since the pause is judged
 * when a fire is due: a fire that jitter delays beyond the pause fires.
 */
export function cursorUnder(
  definition: Definition,
  before: Before | null,
  identity: Identity,
  now: Instant,
  calendars: Calendars = NO_CALENDARS,
): Cursor {
  const stays = before !== null && !movesTimes(before.definition, definition);
  // Also works for an expression that this version cannot plan: its fault must not keep a caller from pausing the schedule.
  if (stays && !definition.enabled) return { nextOccurrenceAt: before.nextOccurrenceAt, nextFireAt: null };
  const times = fireTimes(definition, identity, calendars);
  const nextOccurrenceAt = stays ? nextOf(before, times, now) : firstOf(definition, before, times, now);
  const isDue = definition.enabled && nextOccurrenceAt !== null;
  return { nextOccurrenceAt, nextFireAt: isDue ? times.dueAt(nextOccurrenceAt) : null };
}

function firstOf(definition: Definition, before: Before | null, times: FireTimes, now: Instant): Instant | null {
  const { at } = definition;
  const isNew = at !== null && at !== before?.definition.at && now - at <= graceMsOf(definition);
  return times.next(isNew ? Math.min(now, at - 1) : now);
}

function nextOf({ definition, nextOccurrenceAt: kept }: Before, times: FireTimes, now: Instant): Instant | null {
  if (definition.enabled) return kept;
  // The schedule was enabled: its time has passed, except for the last occurrence, whose delay may not have passed.
  const last = kept === null ? null : lastBetween(times, kept - 1, now);
  return last !== null && times.dueAt(last) > now ? last : times.next(now);
}
