import type { Instant } from '../instant.ts';
import { type FireTimes, lastBetween } from '../time/fire-times.ts';

/** The planning state in a schedule's row. */
export interface CursorState {
  /** Null: by the data that computed it, no fire was left. */
  nextOccurrenceAt: Instant | null;
  lastFireAt: Instant | null;
  /** From its newest version. */
  updatedAt: Instant;
}

/**
 * Where planning stands by `times`, given a cursor that other zone data may have computed: at the first occurrence
 * after `now`, and never before a fire that has happened. It goes back only if the cursor's fire should have come
 * already. Then the catch-up rule decides about that fire; otherwise the fire would be lost, a yearly one for a year.
 */
export function cursorByZoneData(times: FireTimes, state: CursorState, now: Instant): Instant | null {
  const { nextOccurrenceAt: cursor, lastFireAt } = state;
  const next = times.next(Math.max(now, lastFireAt ?? now));
  if (cursor === null || cursor === next) return next;
  return passedOf(times, cursor, next, state, now) ?? next;
}

/** No two versions of the zone data put a local time further apart than a country can move over the date line. */
const FURTHEST_MS = 24 * 3_600_000;

/**
 * The occurrence of a cursor, if it is past: no occurrence is nearer to the cursor, and no past fire is nearer to the
 * occurrence.
 */
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
  // The older version had to plan what was due before the edit.
  return passed !== null && times.dueAt(passed) > updatedAt ? passed : null;
}
