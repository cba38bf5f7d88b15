import type { Instant } from '../instant.ts';
import type { Timing } from '../timing/timing.ts';

/** A cursor that lies further ahead of the database's clock is reported. */
export const AHEAD_SECONDS = 60;

interface Cursor {
  plannedThrough: Instant | null;
  nextOccurrenceAt: Instant | null;
  updatedAt: Instant;
}

/**
 * The moment after which planning goes on: now. A schedule that was planned, or written, while the database's clock was ahead is not
 * planned before the wrong time has come again.
 */
export function planningGoesOnAfter(
  { plannedThrough, nextOccurrenceAt, updatedAt }: Cursor,
  now: Instant,
): Instant {
  const written = updatedAt > now && nextOccurrenceAt !== null ? nextOccurrenceAt - 1 : now;
  return Math.max(now, written, plannedThrough ?? now);
}

/** When a schedule counts as created once the clock is right again: an interval that counts from there keeps its beat. */
export function createdUpTo(
  now: Instant,
  createdAt: Instant,
  { everySeconds, startAt }: Pick<Timing, 'everySeconds' | 'startAt'>,
): Instant {
  if (createdAt <= now) return createdAt;
  if (everySeconds === null || startAt !== null) return now;
  const everyMs = everySeconds * 1000;
  return createdAt - Math.ceil((createdAt - now) / everyMs) * everyMs;
}
