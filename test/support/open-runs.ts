import { sql } from 'drizzle-orm';
import { runIdAt } from './pending-runs.ts';
import type { Store } from './pipeline.ts';

interface OpenRunsGiven {
  status?: 'waiting' | 'pending' | 'running';
  trigger?: 'schedule' | 'manual' | 'backfill';
  guarded?: boolean;
  retried?: boolean;
  /** Whether they are due, and may be claimed. */
  isDue?: boolean;
  /** How long ago they were recorded. */
  secondsAgo?: number;
}

/** So many open runs of a schedule (null: of each), under its present version, for which nothing has happened yet unless it is said here. */
export async function leaveOpenRuns(
  store: Store,
  scheduleId: string | null,
  count: number,
  given: OpenRunsGiven = {},
): Promise<void> {
  const { status = 'pending', trigger = 'schedule', guarded = true, retried = false } = given;
  const { isDue = false, secondsAgo = 60 } = given;
  const claimed = status === 'running' ? sql`statement_timestamp()` : sql`NULL::timestamptz`;
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, ready, attempts, retried_after, claimed_at, handed_off_at, expires_at, overlap_guarded, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, s.uid, s.version, s.id, ${trigger}, ${status}, s.lane, s.priority,
      ${isDue ? sql`statement_timestamp()` : sql`statement_timestamp() + interval '1 year'`}, ${isDue && status === 'pending'},
      ${status === 'running' ? 1 : 0}, ${retried ? 0 : null}::int, ${claimed}, ${claimed}, ${claimed} + interval '1 day', ${guarded},
      statement_timestamp() - make_interval(secs => ${secondsAgo}), statement_timestamp() - make_interval(secs => ${secondsAgo})
    FROM schedules s, generate_series(1, ${count}::int) AS n,
      LATERAL (SELECT date_trunc('second', statement_timestamp()) - make_interval(secs => ${secondsAgo} + n) AS at) AS t
    WHERE s.id = ${scheduleId} OR ${scheduleId}::text IS NULL`);
}

/** How many runs of a schedule there are in each state: `pending`, `cancelled replaced`. */
export async function countRuns(store: Store, scheduleId: string): Promise<Record<string, number>> {
  const rows = await store.rows<{ state: string; count: number }>(
    sql`SELECT concat_ws(' ', status, reason) AS state, count(*)::int AS count FROM all_runs WHERE schedule_id = ${scheduleId}
      GROUP BY state ORDER BY state`,
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}
