import type { Instant } from '../instant.ts';
import type { FireTimes } from './fire-times.ts';

/** The planning state in a schedule's row. */
export interface PlannedUpTo {
  /** Null: no fire was left. */
  nextOccurrenceAt: Instant | null;
  plannedThrough: Instant | null;
  /** From its newest version. */
  updatedAt: Instant;
}

/**
 * Where planning stands after an edit of a calendar, by `times`, which know the edit. Only occurrences after the edit
 * are judged anew. A cursor on a day that is now excluded moves on; a cursor that had skipped a day that is no longer
 * excluded moves back. It never moves back to an occurrence that was planned, or that lies before the schedule's own
 * last edit, which computed the cursor.
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
