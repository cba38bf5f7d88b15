import type { Instant } from '../instant.ts';
import { type FireTimes, lastBetween } from './fire-times.ts';
import type { Timing } from '../timing/timing.ts';

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

/** A cursor that lies further ahead of the database's clock is reported. */
export const AHEAD_SECONDS = 60;

/**
 * The moment after which planning goes on: now. A schedule that was planned, or written, while the database's clock was ahead is not
 * planned before the wrong time has come again.
 */
export function planningGoesOnAfter(
  { plannedThrough, nextOccurrenceAt, updatedAt }: PlannedUpTo,
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

/** What is known about the zone data in use, and about the data by which the cursors were last checked. */
export interface ZoneDataSeen {
  now: Instant;
  /** Null: the cursors were never checked. */
  recorded: { version: string; lookedThroughAt: Instant } | null;
  /** Versions that other instances plan with, or have planned with: the dead are remembered for a day. */
  others: readonly { version: string; alive: boolean; lastAliveAt: Instant }[];
}

type ZoneVerdict = { kind: 'settled' } | { kind: 'look' } | { kind: 'wait'; ms: number };

/** An instance that has left may still finish a write that it had begun. */
export const LAST_WRITES_SECONDS = 5;
/**
 * Instances with newer data that are gone may only be restarting: cursors must not move back and forth with every
 * restart of a rollout.
 */
const ROLLBACK_GRACE_MS = 300_000;

/**
 * Whether an instance with this zone data must check the cursors. While an instance with newer data lives: no, since
 * its data are right, and cursors would move back and forth. When none lives any more, the image was rolled back: then
 * yes, a little later. Otherwise a cursor computed with data that no instance has would fire beside, or instead of, the
 * moment that the older data give.
 */
export function judgeZoneData(own: string, { now, recorded, others }: ZoneDataSeen): ZoneVerdict {
  const newer = others.filter(({ version }) => zoneDataRank(version) > zoneDataRank(own));
  if (newer.some(({ alive }) => alive)) return { kind: 'wait', ms: Infinity };
  const isCurrent =
    recorded?.version === own &&
    others.every(
      ({ alive, lastAliveAt }) => !alive && lastAliveAt + LAST_WRITES_SECONDS * 1000 <= recorded.lookedThroughAt,
    );
  if (isCurrent) return { kind: 'settled' };
  const gone = Math.max(...newer.map(({ lastAliveAt }) => lastAliveAt));
  const ms = Math.min(gone + ROLLBACK_GRACE_MS - now, ROLLBACK_GRACE_MS);
  return ms > 0 ? { kind: 'wait', ms } : { kind: 'look' };
}

/** Versions compare as text: 2025c < 2026a, and after z comes za. A text that is no version is older than any. */
export function zoneDataRank(version: string): string {
  return ZONE_DATA_VERSION.test(version) ? version : '';
}

export const ZONE_DATA_VERSION = /^[0-9]{4}[a-z]+$/;

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
