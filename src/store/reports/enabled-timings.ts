import { sql } from 'drizzle-orm';
import { type Scope, rangesOf, seenPrefixes } from '../../core/access/scope.ts';
import type { Timing } from '../../core/schedules/schedule.ts';
import type { Identity } from '../../core/time/fire-times.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

interface TimedSchedule {
  uid: string;
  identity: Identity;
  /** Null: its row contains none. */
  timing: Timing | null;
  /** Callers may have asked to skip some of its fires. */
  hasSkips: boolean;
}

/** Where a page of timings begins: behind a uid, without a scope; with one, behind an id that the scope may have. */
export interface TimingPage {
  scope: Scope;
  /** Null: it is the first page. */
  after: string | null;
  limit: number;
}

interface Row {
  uid: string;
  id: string;
  timing: string;
  created_at: InstantText;
  has_skips: boolean;
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
    const rows = await rowsOf<Row>(db)(sql`-- listTimings
    SELECT s.uid, s.id, s.created_at, s.timing, s.has_skips FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.uid > ${after ?? FIRST_UID} ORDER BY s.uid LIMIT ${limit}`);
    return rows.map(toTimed);
  }
  const found: Row[] = [];
  const last = after ?? '';
  for (const { from, end } of rangesOf(seenPrefixes(scope)).filter((range) => range.end > last)) {
    if (found.length >= limit) break;
    const rows = await rowsOf<Row>(db)(sql`-- listTimings
    SELECT s.uid, s.id, s.created_at, s.timing, s.has_skips FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.id > ${last} AND s.id >= ${from} AND s.id < ${end}
    ORDER BY s.id LIMIT ${limit - found.length}`);
    found.push(...rows);
  }
  return found.map(toTimed);
}

const FIRST_UID = '00000000-0000-0000-0000-000000000000';

function toTimed(row: Row): TimedSchedule {
  return {
    uid: row.uid,
    identity: { id: row.id, createdAt: toInstant(row.created_at) },
    timing: timingOf(row.timing),
    hasSkips: row.has_skips,
  };
}

function timingOf(text: string): Timing | null {
  try {
    return readTiming(text);
  } catch {
    return null;
  }
}
