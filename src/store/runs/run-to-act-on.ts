import { sql } from 'drizzle-orm';
import type { OfSchedule } from '../../core/runs/new-run.ts';
import type { Speaker } from '../../core/runs/run-decisions.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { mayBeRunId } from '../../core/runs/run.ts';
import { type SuccessBounds, successBoundsIn } from '../../core/schedules/expect.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { recordsOf, rowsOf, scheduleIdOf } from '../../postgres/sql/rows.ts';
import { OF_SCHEDULE, RECORD_COLUMNS, type RecordRow, toRecord } from './record-columns.ts';

/** A run as it stands, open or ended; another transaction may change it at any time. Null: there is none. */
export async function findRecord(db: Executor, id: string): Promise<RunRecord | null> {
  if (!mayBeRunId(id)) return null;
  const [row] = await rowsOf<RecordRow>(db)(sql`-- findRecord
    SELECT ${RECORD_COLUMNS.all_runs} FROM all_runs r WHERE r.id = ${id}::uuid`);
  return row ? toRecord(row) : null;
}

/** The settings that a run of this schedule follows now. They cannot change until the transaction ends. */
export async function shareCurrentDefinition(tx: Transaction, scheduleUid: string): Promise<OfSchedule | null> {
  const [current = null] = await recordsOf<OfSchedule>(tx)(sql`-- shareCurrentDefinition
    SELECT ${OF_SCHEDULE} FROM schedules s WHERE s.uid = ${scheduleUid} FOR SHARE`);
  return current;
}

/** What judges a success of this run; null: nothing, or it is a one-off run. */
export async function successBoundsOf(
  tx: Transaction,
  { scheduleId, scheduleUid, scheduleVersion }: RunRecord,
): Promise<SuccessBounds | null> {
  if (scheduleIdOf(scheduleId) === null) return null;
  const [row] = await rowsOf<{ expect: unknown }>(tx)(sql`-- successBoundsOf
    SELECT definition->'expect' AS expect FROM schedule_versions
    WHERE schedule_uid = ${scheduleUid} AND version = ${scheduleVersion}`);
  return successBoundsIn(row?.expect);
}

/**
 * Extends the run's lease from now, and stores the progress if it is given; false: the run is not under way, or not with this caller. One
 * statement suffices: a guard on one row sees the row as it is once its lock is had.
 */
export async function heartbeatIfCurrent(
  db: Executor,
  id: string,
  { attempt, workerId, progress }: Speaker & { progress: number | null },
): Promise<boolean> {
  if (!mayBeRunId(id)) return false;
  const rows = await rowsOf(db)(sql`-- heartbeatIfCurrent
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    UPDATE runs r SET progress = coalesce(${progress}::float8, r.progress), updated_at = clock.now,
      expires_at = CASE WHEN r.status = 'running' OR r.observed
        THEN greatest(clock.now + make_interval(secs => r.lease_seconds), r.expires_at) END
    FROM clock WHERE r.id = ${id}::uuid AND r.trigger <> 'notify'
      AND CASE r.status WHEN 'running' THEN true WHEN 'pending' THEN r.attempts > 0 OR r.observed END
      AND coalesce(r.attempts = ${attempt}::float8
        OR r.attempts > ${attempt}::float8 AND r.attempt_in_doubt <= ${attempt}::float8, ${attempt}::float8 IS NULL)
      AND r.worker_id IS NOT DISTINCT FROM ${workerId}::text
    RETURNING r.id`);
  return rows.length > 0;
}
