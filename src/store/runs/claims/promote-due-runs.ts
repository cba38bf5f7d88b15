import { sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { queryPrepared } from '../../../postgres/sql/rows.ts';
import { isPull } from '../../queues/queue-lanes.ts';

interface Promoted {
  /** Runs that are ready now, and whether workers may pull some of them. */
  count: number;
  toPull: boolean;
  /** In how many ms the next run comes due; null: none is recorded. */
  msUntilNextDue: number | null;
}

/**
 * Makes runs ready that have come due since they were recorded: retries, one-off runs with a `runAt`, jittered fires. Claims read only
 * ready runs, so that a claim costs the same however much is recorded for next week. Runs with a limit become ready by admission instead
 * (store/limits/admit-runs.ts).
 *
 * It takes an array of ids: the planner takes a third of all runs for due, and would read all of them to join these few.
 */
export async function promoteDueRuns(db: Executor, limit: number): Promise<Promoted> {
  const [row] = await queryPrepared<{ count: number; to_pull: boolean; ms: number | null }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), due AS MATERIALIZED (
      SELECT id FROM runs
      WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL
        AND due_at <= (SELECT now FROM clock)
      ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), promoted AS (
      UPDATE runs r SET ready = true WHERE r.id = ANY (ARRAY(SELECT id FROM due)) RETURNING r.lane
    )
    SELECT (SELECT count(*) FROM promoted)::int AS count,
      (SELECT coalesce(bool_or(${isPull(sql`lane`)}), false) FROM promoted) AS to_pull,
      (SELECT extract(epoch FROM min(due_at) - (SELECT now FROM clock)) * 1000 FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND NOT ready AND limit_id IS NULL
          AND due_at > (SELECT now FROM clock))::float8 AS ms`,
  );
  return { count: row?.count ?? 0, toPull: row?.to_pull ?? false, msUntilNextDue: row?.ms ?? null };
}
