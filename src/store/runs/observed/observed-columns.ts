import { type SQL, sql } from 'drizzle-orm';
import { OBSERVED_LANE } from '../../../core/schedules/schedule.ts';

/** Of a row with the columns of its schedule: whether its run for that moment is observed. `isObservedAt` says the same. */
export function isObserved(row: SQL, scheduledFor: SQL): SQL {
  return sql`(${row}.report_seconds IS NOT NULL AND coalesce(${scheduledFor} < ${row}.observe_until, true))`;
}

/** What such a run takes from its schedule instead, in a row `f` that has the answer as `observed`: `observedRun` in SQL. */
export const AS_OBSERVED = {
  lane: sql.raw(`CASE WHEN f.observed THEN '${OBSERVED_LANE}' ELSE f.lane END`),
  limitId: sql`CASE WHEN NOT f.observed THEN f.limit_id END`,
  overlap: sql`CASE WHEN f.observed THEN 'allow' ELSE f.overlap END`,
  expiresAfter: sql`CASE WHEN NOT f.observed THEN f.expires_after_seconds END`,
};

/** What only observed runs have. */
export const OBSERVED_COLUMNS = sql`observed, expires_at, lease_seconds`;

/** Their values, from a row `f` with its `due_at`. */
export const OBSERVED_VALUES = sql`f.observed, CASE WHEN f.observed THEN f.due_at + make_interval(secs => f.report_seconds) END,
        CASE WHEN f.observed THEN f.report_seconds END`;
