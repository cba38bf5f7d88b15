import { sql } from 'drizzle-orm';
import { prefixRanges, type Scope, seenPrefixes } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import { type PlannedUpTo, planningGoesOnAfter } from '../../core/time/cursors.ts';
import type { Identity, Timing } from '../../core/timing/timing.ts';
import type { Executor } from '../../postgres/executor.ts';
import { FIRST_UUID } from '../../postgres/sql/arrays.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import { CURSOR } from '../schedules/cursors-ahead.ts';

interface TimedSchedule {
  uid: string;
  identity: Identity;
  /** Null: its row contains none. */
  timing: Timing | null;
  /** Some of its fires may not be to be made. */
  hasSkips: boolean;
  /** The moment after which planning goes on, if that is still to come ; else null. */
  goesOnAfter: Instant | null;
}

/** Where a page of timings begins: behind a uid, without a scope; with one, behind an id that the scope may have. */
export interface TimingPage {
  scope: Scope;
  /** Null: it is the first page. */
  after: string | null;
  limit: number;
}

interface Row extends PlannedUpTo {
  uid: string;
  id: string;
  timing: string;
  createdAt: Instant;
  hasSkips: boolean;
  now: Instant;
}

/**
 * Enabled schedules with fire times of their own that a caller of this scope sees: in the order of their uids, or with a scope in that of
 * their ids, range by range, so that it reads past nothing between them.
 */
export async function listTimings(
  db: Executor,
  { scope, after, limit }: TimingPage,
): Promise<TimedSchedule[]> {
  if (scope === null) {
    const rows = await recordsOf<Row>(db)(sql`-- listTimings
    SELECT ${TIMED} FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.uid > ${after ?? FIRST_UUID} ORDER BY s.uid LIMIT ${limit}`);
    return rows.map(toTimed);
  }
  const found: Row[] = [];
  const last = after ?? '';
  for (const { from, end } of prefixRanges(seenPrefixes(scope)).filter((range) => range.end > last)) {
    if (found.length >= limit) break;
    const rows = await recordsOf<Row>(db)(sql`-- listTimings
    SELECT ${TIMED} FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.id > ${last} AND s.id >= ${from} AND s.id < ${end}
    ORDER BY s.id LIMIT ${limit - found.length}`);
    found.push(...rows);
  }
  return found.map(toTimed);
}

const TIMED = sql`s.uid, s.id, s.created_at, s.timing, s.has_skips, clock_timestamp() AS now, ${CURSOR}`;

function toTimed({ uid, id, createdAt, timing, hasSkips, now, ...cursor }: Row): TimedSchedule {
  const after = planningGoesOnAfter(cursor, now);
  const goesOnAfter = after > now ? after : null;
  return { uid, identity: { id, createdAt }, timing: timingOf(timing), hasSkips, goesOnAfter };
}

function timingOf(text: string): Timing | null {
  try {
    return readTiming(text);
  } catch {
    return null;
  }
}
