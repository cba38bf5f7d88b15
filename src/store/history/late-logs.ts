import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import { DAY_MS } from '../../core/utc-day.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Sweep, SweptPage } from './leftovers.ts';

/**
 * Logs that outlive their day. The logs of the runs that were due on a day are dropped with it, unread. A few of these runs may be kept
 * longer: they ended days later, or are open. Their ids tell which they are, so that only these are looked for, and their logs moved to
 * where those are that were written days later.
 */

/** Moves the logs of kept runs out of a day that is to be dropped; answers of how many runs, at most `limit`. */
export async function moveKeptLogs(db: Executor, day: Instant, limit: number): Promise<number> {
  const of = sql`l.day = ${isoInstant(day)}::timestamptz`;
  const moved = await rowsOf(db)(sql`-- moveKeptLogs
    WITH kept AS MATERIALIZED (
      SELECT r.id FROM all_runs r
      WHERE r.id >= ${firstRunIdAt(day)}::uuid AND r.id < ${firstRunIdAt(day + DAY_MS)}::uuid
        AND EXISTS (SELECT FROM run_logs l WHERE ${of} AND l.run_id = r.id)
      ORDER BY r.id LIMIT ${limit}
    ), moved AS (
      UPDATE run_logs l SET day = 'infinity' FROM kept WHERE ${of} AND l.run_id = kept.id
    )
    SELECT 1 FROM kept`);
  return moved.length;
}

/** Deletes such logs whose run has left history: a page of them, in the order of run ids. */
export async function sweepLogs(db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> {
  const within = sql`run_id > ${after}::uuid AND run_id < ${before}::uuid`;
  const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweepLogs
    SELECT l.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = l.run_id) AS is_gone FROM (
      SELECT DISTINCT run_id FROM (
        SELECT run_id FROM run_logs_late WHERE ${within} UNION ALL SELECT run_id FROM run_logs_other WHERE ${within}) AS logs
      ORDER BY run_id LIMIT ${limit}) AS l`);
  const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
  for (const table of gone.length > 0 ? ['run_logs_late', 'run_logs_other'] : []) {
    await db.execute(sql`-- sweepLogs
      DELETE FROM ${sql.raw(table)} l WHERE l.run_id = ANY (${uuids(gone)})
      AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = l.run_id)`);
  }
  return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
}
