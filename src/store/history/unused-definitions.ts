import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** All definitions of one uid, as their index has them. */
export interface DefinitionPosition {
  scheduleId: string;
  uid: string;
  /** No schedule has it: it belongs to a deleted one, or to one-off runs. */
  isOrphan: boolean;
}

/** The next of all; one with several versions may come several times, but on one page only. */
export async function listDefinitions(
  db: Executor,
  { after, limit }: { after: DefinitionPosition | null; limit: number },
): Promise<DefinitionPosition[]> {
  const further = after
    ? sql`WHERE (schedule_id, schedule_uid) > (${after.scheduleId}, ${after.uid}::uuid)`
    : sql``;
  const rows = await rowsOf<{ schedule_id: string; schedule_uid: string; is_orphan: boolean }>(
    db,
    sql`WITH page AS MATERIALIZED (
      SELECT schedule_id, schedule_uid FROM schedule_versions ${further}
      ORDER BY schedule_id, schedule_uid LIMIT ${limit}
    )
    SELECT p.schedule_id, p.schedule_uid, s.uid IS NULL AS is_orphan
    FROM page p LEFT JOIN schedules s ON s.uid = p.schedule_uid ORDER BY p.schedule_id, p.schedule_uid`,
  );
  return rows.map((row) => ({
    scheduleId: row.schedule_id,
    uid: row.schedule_uid,
    isOrphan: row.is_orphan,
  }));
}

/**
 * Deletes the definitions of these uids if the last of them is older than a moment, no schedule has it and no run uses it. Answers how
 * many it deleted.
 *
 * This is safe beside a transaction that records one-off runs:
 * 1. That transaction refreshes `at` of a definition that is older than an hour. A younger one stays younger than `before` for days.
 * 2. It inserts a definition that is missing, also one that was deleted while it waited for the row.
 * 3. The delete passes over locked rows, and checks `at` again under the lock. A run that was added after the snapshot has made `at`
 *    young, so it does no harm that the delete does not see this run.
 *
 * OFFSET 0 keeps the planner from joining with all of history: each uid is looked up in the index of each day.
 */
export async function dropUnusedDefinitionsBefore(
  db: Executor,
  before: Instant,
  uids: readonly string[],
): Promise<number> {
  const old = sql`< ${isoInstant(before)}::timestamptz`;
  const rows = await rowsOf(
    db,
    sql`WITH unused AS MATERIALIZED (
      SELECT v.schedule_uid, v.version FROM schedule_versions v
      WHERE v.schedule_uid = ANY (${uuids(uids)}) AND v.at ${old}
        AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = v.schedule_uid)
        AND NOT EXISTS (SELECT FROM schedule_versions w WHERE w.schedule_uid = v.schedule_uid AND NOT w.at ${old})
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger IN (${PLANNED}) OFFSET 0)
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger NOT IN (${PLANNED}) OFFSET 0)
        AND NOT EXISTS (SELECT FROM history r WHERE r.schedule_uid = v.schedule_uid OFFSET 0)
      ORDER BY v.schedule_uid, v.version FOR UPDATE OF v SKIP LOCKED
    )
    DELETE FROM schedule_versions v USING unused u
    WHERE v.schedule_uid = u.schedule_uid AND v.version = u.version RETURNING v.version`,
  );
  return rows.length;
}

/** As the indexes on them say it. */
const PLANNED = sql`'schedule', 'catchUp', 'backfill'`;
