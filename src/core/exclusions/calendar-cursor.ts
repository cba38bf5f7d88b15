import type { Instant } from '../instant.ts';
import type { FireTimes } from '../time/fire-times.ts';

/** What a schedule's row says of its planning. */
export interface PlannedUpTo {
  /** Null: there was nothing left to fire. */
  nextOccurrenceAt: Instant | null;
  plannedThrough: Instant | null;
  /** Of its newest version. */
  updatedAt: Instant;
}

/**
 * Where planning stands after an edit of a calendar, by `times`, which know of that edit. Only what occurs after the edit is judged anew:
 * a cursor on a day that is excluded now moves on, and one that had passed over a day that is not excluded any more moves back. It never
 * moves back to what was planned, or to what lies before the schedule's own last edit, whose cursor was computed then.
 */
export function cursorByCalendars(
  times: Pick<FireTimes, 'next'>,
  { nextOccurrenceAt: cursor, plannedThrough, updatedAt }: PlannedUpTo,
  editedAt: Instant,
): Instant | null {
  const judgedAfter = Math.max(editedAt, updatedAt);
  if (cursor !== null && cursor <= judgedAfter) return cursor;
  return times.next(Math.max(judgedAfter, plannedThrough ?? judgedAfter));
}
