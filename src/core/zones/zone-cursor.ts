import type { Instant } from '../instant.ts';
import { type FireTimes, lastBetween } from '../time/fire-times.ts';

/** What a schedule's row says of its planning. */
export interface CursorState {
  /** Null: by the data it was computed with, there is nothing left to fire. */
  nextOccurrenceAt: Instant | null;
  lastFireAt: Instant | null;
  /** Of its newest version. */
  updatedAt: Instant;
}

/**
 * Where planning stands by `times`, given a cursor that other zone data may have computed: at the first occurrence after `now`, and
 * never before a fire that has happened. It goes back only if the fire that the cursor stands for should have come already. Then the
 * catch-up rule decides about that fire. Otherwise the fire would be dropped, a yearly one for a year.
 */
export function cursorByZoneData(times: FireTimes, state: CursorState, now: Instant): Instant | null {
  const { nextOccurrenceAt: cursor, lastFireAt } = state;
  const next = times.next(Math.max(now, lastFireAt ?? now));
  if (cursor === null || cursor === next) return next;
  return passedOf(times, cursor, next, state, now) ?? next;
}

/** No two versions of the zone data put a local time further apart than a country can move over the date line. */
const FURTHEST_MS = 24 * 3_600_000;

/** The occurrence that a cursor stands for, where it is past: none is nearer, and no fire that there was is nearer to it. */
function passedOf(
  times: FireTimes,
  cursor: Instant,
  next: Instant | null,
  { lastFireAt, updatedAt }: CursorState,
  now: Instant,
): Instant | null {
  const first = Math.max(
    cursor - FURTHEST_MS,
    next === null ? -Infinity : cursor - (next - cursor),
    lastFireAt === null ? -Infinity : (lastFireAt + cursor) / 2,
  );
  if (first > now) return null;
  const passed = lastBetween(times, Math.ceil(first) - 1, now);
  // What was due before an edit was the older version's to plan.
  return passed !== null && times.dueAt(passed) > updatedAt ? passed : null;
}
