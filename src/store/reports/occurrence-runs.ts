import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { type RunStatus, firstRunIdAt } from '../../core/runs/run.ts';
import type { Position } from '../../core/time/expected-occurrences.ts';
import type { PlannedRun } from '../../core/time/occurrences.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** Planned runs of these schedules after a position, up to and with an instant, in the order of (scheduledFor, uid). */
export async function plannedRuns(
  db: Executor,
  uids: readonly string[],
  { after, upTo, limit }: { after: Position; upTo: Instant; limit: number },
): Promise<PlannedRun[]> {
  const rows = await rowsOf<RunRow>(
    db,
    sql`SELECT r.* FROM unnest(${uuids(uids)}) AS u(uid), LATERAL (
      SELECT id, schedule_uid, scheduled_for, schedule_version, status, reason, coalesced, coalesced_from FROM all_runs
      WHERE schedule_uid = u.uid AND trigger IN ('schedule', 'catchUp', 'backfill')
        AND id >= ${firstRunIdAt(after.fireAt)}::uuid AND id < ${firstRunIdAt(upTo + 1)}::uuid
        AND (scheduled_for, schedule_uid) > (${isoInstant(after.fireAt)}::timestamptz, ${after.uid}::uuid)
      ORDER BY id LIMIT ${limit}) AS r
    ORDER BY r.scheduled_for, r.schedule_uid LIMIT ${limit}`,
  );
  return rows.map(plannedRun);
}

/** For each schedule, the first runs after an instant that stand for missed occurrences. */
export async function recordsAfter(
  db: Executor,
  uids: readonly string[],
  at: Instant,
): Promise<PlannedRun[]> {
  const rows = await rowsOf<RunRow>(
    db,
    sql`SELECT r.* FROM unnest(${uuids(uids)}) AS u(uid), LATERAL (
      SELECT id, schedule_uid, scheduled_for, schedule_version, status, reason, coalesced, coalesced_from FROM all_runs
      WHERE schedule_uid = u.uid AND coalesced > 0 AND trigger IN ('schedule', 'catchUp', 'backfill')
        AND id >= ${firstRunIdAt(at + 1)}::uuid
      ORDER BY id LIMIT ${RECORDS}) AS r`,
  );
  return rows.map(plannedRun);
}

/** The occurrences that they stand for are consecutive, unless an edit of the jitter lies in between. */
const RECORDS = 3;

interface RunRow {
  id: string;
  schedule_uid: string;
  scheduled_for: InstantText;
  schedule_version: number;
  status: RunStatus;
  reason: string | null;
  coalesced: number;
  coalesced_from: InstantText | null;
}

function plannedRun(row: RunRow): PlannedRun {
  return {
    id: row.id,
    uid: row.schedule_uid,
    scheduledFor: toInstant(row.scheduled_for),
    version: row.schedule_version,
    status: row.status,
    reason: row.reason,
    coalesced: row.coalesced,
    coalescedFrom: toInstantOrNull(row.coalesced_from),
  };
}
