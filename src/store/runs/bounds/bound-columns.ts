import { type SQL, sql } from 'drizzle-orm';
import { ALERT_OF_BOUND } from '../../../core/alerts/alert.ts';
import { MAX_EXPECT_SECONDS } from '../../../core/schedules/expect.ts';
import { hasOpenAlert } from '../../alerts/alert-effects.ts';

const [START, FINISH] = [sql.raw(`'${ALERT_OF_BOUND.start}'`), sql.raw(`'${ALERT_OF_BOUND.finish}'`)];

/** What is left of a run's bounds, as columns of its row. */
export const BOUND_COLUMNS = sql`next_bound, bound_at, finish_within_seconds`;

/** Their values for a run that is recorded now, from a row of that name with the bounds of its schedule: `boundsOf` in SQL. */
export function recordedBounds(row: SQL, dueAt: SQL): SQL {
  return sql`CASE WHEN ${row}.start_within_seconds IS NOT NULL THEN 'start' END,
        ${dueAt} + make_interval(secs => ${row}.start_within_seconds), ${row}.finish_within_seconds`;
}

/** Whether the beginning of the first attempt of a run `r` has to be durable, since bounds go by it; null: no. */
export const IS_TO_BEGIN = sql`nullif(r.next_bound = 'start' OR r.finish_within_seconds IS NOT NULL, false)`;

/** Of a run `r` whose beginning is judged, as it was before. */
export const BEFORE_BEGINNING = sql`r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.status,
      r.next_bound, r.bound_at`;

/** In the SET of an UPDATE of runs `r`, an attempt of which begins at that moment. If it is not the first, they stay as they are. */
export function setBegun(at: SQL): SQL {
  return sql`unmet = CASE WHEN r.next_bound = 'start' AND r.bound_at < ${at} THEN array_append(r.unmet, 'start') ELSE r.unmet END,
      next_bound = CASE WHEN r.finish_within_seconds IS NOT NULL THEN 'finish' ELSE nullif(r.next_bound, 'start') END,
      bound_at = CASE WHEN r.finish_within_seconds IS NOT NULL THEN ${at} + make_interval(secs => r.finish_within_seconds)
        WHEN r.next_bound = 'finish' THEN r.bound_at END,
      finish_within_seconds = NULL`;
}

/**
 * The statement that writes, as effects, what these beginnings mean for their schedules: `begun` is a FROM with rows `b` of
 * BEFORE_BEGINNING. A bound that was kept heals only an episode that is open.
 */
export function causesOfBeginnings(begun: SQL, at: SQL): SQL {
  return sql`INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT CASE WHEN b.bound_at < ${at} THEN 'breaks' ELSE 'heals' END, 'unstarted', b.id, b.schedule_uid, b.schedule_version,
        b.schedule_id, b.trigger, b.status, least(b.bound_at, ${at}), 0
      FROM ${begun} WHERE b.next_bound = 'start' AND (b.bound_at < ${at} OR ${hasOpenAlert(sql`b.schedule_uid`, START)})`;
}

/** Whether the end of a run `r` at that moment says nothing of a bound: it has none, or keeps it, and heals no episode by that. */
export function keepsBoundQuietly(finishedAt: SQL): SQL {
  return sql`CASE WHEN r.bound_at IS NULL THEN true
          ELSE ${finishedAt} <= r.bound_at AND ${hasOpenAlert(sql`r.schedule_uid`, FINISH)} IS NOT TRUE END`;
}

/**
 * In the SET of an UPDATE of runs `r` whose attempt has not begun after all. If it was the first, they are again as they were recorded: the
 * bounds of the run's version. A bound that was found broken stays so.
 */
export function setNotBegun(wasFirst: SQL): SQL {
  return sql`(${BOUND_COLUMNS}) = (
        SELECT CASE WHEN NOT o.again THEN r.next_bound WHEN e.start_seconds IS NOT NULL THEN 'start' END,
          CASE WHEN o.again THEN r.due_at + make_interval(secs => e.start_seconds) ELSE r.bound_at END,
          CASE WHEN o.again THEN e.finish_seconds ELSE r.finish_within_seconds END
        FROM (SELECT ${wasFirst} AND r.retried_after IS NULL AS again) AS o LEFT JOIN LATERAL (
          SELECT CASE WHEN r.unmet IS NULL AND r.trigger <> 'backfill' THEN ${secondsOf('startWithinSeconds')} END AS start_seconds,
            ${secondsOf('finishWithinSeconds')} AS finish_seconds
          FROM schedule_versions v
          WHERE o.again AND v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version) AS e ON true)`;
}

/** No cast fails, whatever text is stored. */
function secondsOf(bound: string): SQL {
  const value = sql`v.definition->'expect'->${sql.raw(`'${bound}'`)}`;
  return sql`CASE WHEN jsonb_typeof(${value}) = 'number' THEN least((${value})::numeric, ${sql.raw(String(MAX_EXPECT_SECONDS))})::int END`;
}
