import { sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import { plannedRunId } from '../core/run.ts';
import { instants, uuids } from './arrays.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';
import { overlapOf } from './timings.ts';

/** An occurrence that is to have a run, and when that is due. */
export interface BackfillFire {
  scheduledFor: Instant;
  dueAt: Instant;
}

/**
 * Records runs of a schedule that have none, and opens those again that were skipped or abandoned, under its present version;
 * all others stay as they are. The caller holds the schedule's row lock, from an earlier statement. Answers how many
 * are to be handed off now.
 */
export async function recordBackfillUnderLock(
  tx: Executor,
  scheduleUid: string,
  fires: readonly BackfillFire[],
): Promise<number> {
  if (fires.length === 0) return 0;
  const [row] = await rowsOf<{ created: number }>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    schedule AS MATERIALIZED (
      SELECT uid, id, version, lane, priority, ${overlapOf(sql`schedules`)} <> 'allow' AS guarded FROM schedules WHERE uid = ${scheduleUid}
    ), wanted AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(fires.map(({ scheduledFor }) => plannedRunId(scheduleUid, scheduledFor)))},
        ${instants(fires.map(({ scheduledFor }) => scheduledFor))}, ${instants(fires.map(({ dueAt }) => dueAt))})
        AS w(id, scheduled_for, due_at)
    ), inserted AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
        due_at, attempts, overlap_guarded, created_at, updated_at)
      SELECT w.id, w.scheduled_for, s.uid, s.version, s.id, 'backfill', 'pending', s.lane, s.priority, w.due_at, 0,
        s.guarded, clock.now, clock.now
      FROM wanted w CROSS JOIN schedule s CROSS JOIN clock ORDER BY w.scheduled_for
      ON CONFLICT DO NOTHING
      RETURNING id
    ), given_up AS MATERIALIZED (
      SELECT r.scheduled_for, r.id FROM wanted w JOIN runs r ON r.scheduled_for = w.scheduled_for AND r.id = w.id
      WHERE r.status IN ('skipped', 'abandoned') ORDER BY r.scheduled_for, r.id FOR UPDATE OF r
    ), reopened AS (
      UPDATE runs r SET status = 'pending', reason = NULL, error = NULL, finished_at = NULL, trigger = 'backfill',
        schedule_version = s.version, lane = s.lane, priority = s.priority, overlap_guarded = s.guarded, due_at = clock.now,
        failures = 0, recoveries = 0, recovered_at = NULL, lookups = 0, claimed_by = NULL, claimed_at = NULL,
        first_claimed_at = NULL, handoff_started_at = NULL, handed_off_at = NULL, result_status_code = NULL, result_body = NULL,
        execution_id = NULL, worker_id = NULL, progress = NULL, updated_at = clock.now
      FROM given_up g CROSS JOIN schedule s CROSS JOIN clock
      WHERE r.scheduled_for = g.scheduled_for AND r.id = g.id
      RETURNING r.id
    )
    SELECT (SELECT count(*) FROM inserted)::int + (SELECT count(*) FROM reopened)::int AS created`,
  );
  return row?.created ?? 0;
}
