import { sql } from 'drizzle-orm';
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

/** Enabled schedules with fire times of their own, in the order of their uids, after one of them. */
export async function listTimings(
  db: Executor,
  { after, limit }: { after: string; limit: number },
): Promise<TimedSchedule[]> {
  const rows = await rowsOf<{
    uid: string;
    id: string;
    timing: string;
    created_at: InstantText;
    has_skips: boolean;
  }>(db)(sql`-- listTimings
    SELECT s.uid, s.id, s.created_at, s.timing, s.has_skips FROM schedules s
    WHERE s.enabled AND s.after_uid IS NULL AND s.uid > ${after} ORDER BY s.uid LIMIT ${limit}`);
  return rows.map((row) => ({
    uid: row.uid,
    identity: { id: row.id, createdAt: toInstant(row.created_at) },
    timing: timingOf(row.timing),
    hasSkips: row.has_skips,
  }));
}

function timingOf(text: string): Timing | null {
  try {
    return readTiming(text);
  } catch {
    return null;
  }
}
