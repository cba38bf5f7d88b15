import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** Runs of replaced versions that a schedule may have; if it has more, it keeps all versions for now. */
const MAX_RUNS = 1_000;
/** A version was in force until the next one: none of its runs was due later than that, whatever the clocks of instances say. */
const SLACK_MS = 3_600_000;

/**
 * Deletes versions of existing schedules that were replaced before a moment and that no run names, at most `limit` of each schedule; so
 * what was in force at that moment or later stays, and so does the first version, which says when the schedule was created. Answers how
 * many it deleted.
 *
 * A run that is recorded meanwhile names the newest version. One that is opened again stands in `runs` or in `history`, whatever
 * this statement sees.
 */
export async function dropReplacedDefinitionsBefore(
  db: Executor,
  before: Instant,
  uids: readonly string[],
  limit: number,
): Promise<number> {
  const dueBefore = before + SLACK_MS;
  const rows = await rowsOf(
    db,
    sql`WITH replaced AS MATERIALIZED (
      SELECT s.uid, v.version FROM schedules s CROSS JOIN LATERAL (
        SELECT version, lead(at) OVER (ORDER BY version) AS until FROM (
          SELECT version, at FROM schedule_versions WHERE schedule_uid = s.uid AND version > 1 AND version <= s.version
          ORDER BY version LIMIT ${limit}::int + 1) AS first) AS v
      WHERE s.uid = ANY (${uuids(uids)}) AND v.until < ${isoInstant(before)}::timestamptz
    ), named AS MATERIALIZED (
      SELECT r.uid, coalesce(array_agg(n.version) FILTER (WHERE n.version IS NOT NULL), '{}') AS versions
      FROM (SELECT DISTINCT uid FROM replaced) AS r LEFT JOIN LATERAL (
        (SELECT schedule_version AS version FROM runs WHERE schedule_uid = r.uid AND trigger IN (${PLANNED})
          AND scheduled_for < ${isoInstant(dueBefore)}::timestamptz LIMIT ${MAX_RUNS})
        UNION ALL
        (SELECT schedule_version FROM runs WHERE schedule_uid = r.uid AND trigger NOT IN (${PLANNED}) LIMIT ${MAX_RUNS})
        UNION ALL
        (SELECT schedule_version FROM history WHERE schedule_uid = r.uid AND id < ${firstIdAt(dueBefore)}::uuid LIMIT ${MAX_RUNS})
      ) AS n ON true GROUP BY r.uid HAVING count(n.version) < ${MAX_RUNS}
    )
    DELETE FROM schedule_versions v USING replaced r JOIN named USING (uid)
    WHERE v.schedule_uid = r.uid AND v.version = r.version AND r.version <> ALL (named.versions) RETURNING v.version`,
  );
  return rows.length;
}

/** As the indexes on them say it. */
const PLANNED = sql`'schedule', 'catchUp', 'backfill'`;

/** Ids begin with the moment for which their run is scheduled. */
function firstIdAt(at: Instant): string {
  return at.toString(16).padStart(12, '0').padEnd(32, '0');
}
