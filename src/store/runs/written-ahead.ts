import { sql } from 'drizzle-orm';
import { AHEAD_SECONDS } from '../../core/time/cursors.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** Effects and backlogs are put off for five minutes at most. */
const PUT_OFF_SECONDS = 300 + AHEAD_SECONDS;

/**
 * Runs whose rows were written while the database's clock was ahead wait for a moment that is far off: these go on as if they had been
 * written now. The wait for another attempt, and for a target's "no" to count, is as long as it was then; a worker, or a callback, has one
 * whole lease from now on; what was due is due. A moment that a caller named stays, and so does what an instance has claimed: its
 * settlement writes the row anew. What follows from ends, and was put off, is tried again. Rows that others have locked are passed over.
 * Answers how many runs it changed, of at most so many.
 */
export async function bringBackRuns(db: Executor, limit: number): Promise<number> {
  const rows = await rowsOf(db)(sql`-- bringBackRuns
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ahead AS MATERIALIZED (
      SELECT r.id, r.updated_at - clock.now AS by, clock.now,
        CASE WHEN r.status = 'running' OR r.due_at <= clock.now THEN r.due_at
          WHEN r.attempts > 0 THEN greatest(clock.now, r.due_at - (r.updated_at - clock.now))
          WHEN r.due_at <= r.updated_at THEN clock.now ELSE r.due_at END AS due_at
      FROM runs r, clock
      WHERE r.updated_at > (SELECT now FROM clock) + make_interval(secs => ${AHEAD_SECONDS})
        AND (r.claimed_by IS NULL OR r.status = 'running')
      LIMIT ${limit} FOR UPDATE OF r SKIP LOCKED
    )
    UPDATE runs r SET due_at = ahead.due_at, updated_at = ahead.now, in_doubt_until = r.in_doubt_until - ahead.by,
      begin_by = least(r.begin_by, ahead.due_at + make_interval(secs => r.expires_after_seconds)),
      expires_at = least(r.expires_at, ahead.now + make_interval(secs => r.lease_seconds))
    FROM ahead WHERE r.id = ahead.id RETURNING r.id`);
  return rows.length;
}

/** The same of effects and backlogs that were put off: at most so many of each. Answers how many there were of what there were more of. */
export async function bringBackPutOffs(db: Executor, limit: number): Promise<number> {
  const [row] = await rowsOf<{ count: number }>(db)(sql`-- bringBackPutOffs
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), late AS (SELECT now + make_interval(secs => ${PUT_OFF_SECONDS}) AS than FROM clock),
    effects_back AS (
      UPDATE effects SET retry_at = clock.now FROM clock WHERE id = ANY (ARRAY(
        SELECT id FROM effects WHERE retry_at > (SELECT than FROM late) ORDER BY id LIMIT ${limit} FOR UPDATE SKIP LOCKED)) RETURNING 1
    ), backlogs_back AS (
      UPDATE backlogs SET next_at = clock.now FROM clock WHERE id = ANY (ARRAY(
        SELECT id FROM backlogs WHERE next_at > (SELECT than FROM late) ORDER BY id LIMIT ${limit} FOR UPDATE SKIP LOCKED)) RETURNING 1
    )
    SELECT greatest((SELECT count(*) FROM effects_back), (SELECT count(*) FROM backlogs_back))::int AS count`);
  return row?.count ?? 0;
}
