import { sql } from 'drizzle-orm';
import { type Instant, isoInstant, DAY_MS } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { sweeperOf } from './leftovers.ts';

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

/** Deletes such logs once their run has left history. */
export const sweepLogs = sweeperOf({
  runIds: (within) => sql`SELECT DISTINCT run_id FROM (
    SELECT run_id FROM run_logs_late WHERE ${within} UNION ALL SELECT run_id FROM run_logs_other WHERE ${within}) AS logs`,
  tables: ['run_logs_late', 'run_logs_other'],
});
