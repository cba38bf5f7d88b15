import { sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { labelled } from '../../schedules/search/labelled-schedules.ts';
import { fewLabelled } from './labelled-runs.ts';
import { type RunFilter, newestFirst } from './run-pages.ts';
import { inBoth } from './runs-of-schedule.ts';

export interface MatchingRuns {
  /** Counted up to a bound. */
  matched: number;
  /** The newest of them, newest first. */
  ids: string[];
}

/**
 * How many runs match, and the first `limit` of them. `scheduleIsThere`: without runs of deleted schedules. For some statuses other than
 * `succeeded`, these have indexes.
 */
export async function matchingRuns(
  db: Executor,
  { limit, ...filter }: RunFilter,
  { countTo, scheduleIsThere }: { countTo: number; scheduleIsThere: boolean },
): Promise<MatchingRuns> {
  const { labels = [] } = filter;
  const few = labels.length > 0 ? await fewLabelled(db, filter, labels) : null;
  const scheduleUids = few ?? filter.scheduleUids;
  if (scheduleUids?.length === 0 || filter.statuses?.length === 0) return { matched: 0, ids: [] };
  const ofMany = labels.length > 0 && few === null;
  const conditions = [
    // Not as a join: the planner knows too little of labels to choose one. So the schedules are hashed, once.
    ...(ofMany ? [sql`(c.schedule_uid IN (${labelled(labels)})) IS TRUE`] : []),
    ...(scheduleIsThere ? [SCHEDULE_IS_THERE] : []),
  ];
  const candidates = newestFirst(
    { ...filter, scheduleUids, limit: conditions.length > 0 ? Number.MAX_SAFE_INTEGER : countTo },
    { columns: inBoth(sql`r.id, r.schedule_uid, r.schedule_id`) },
  );
  const where = conditions.length > 0 ? sql`WHERE ${sql.join(conditions, sql` AND `)}` : sql``;
  const [row] = await rowsOf<{ matched: number; ids: string | null }>(db)(sql`-- matchingRuns
    WITH candidates AS MATERIALIZED (${candidates}),
      matching AS MATERIALIZED (SELECT c.id FROM candidates c ${where} ORDER BY c.id DESC LIMIT ${countTo})
    SELECT (SELECT count(*)::int FROM matching) AS matched,
      (SELECT string_agg(f.id::text, ',' ORDER BY f.id DESC) FROM (SELECT id FROM matching ORDER BY id DESC LIMIT ${limit}) AS f) AS ids`);
  return { matched: row?.matched ?? 0, ids: row?.ids?.split(',') ?? [] };
}

const SCHEDULE_IS_THERE = sql`(c.schedule_id = '' OR (c.schedule_uid IN (SELECT uid FROM schedules)) IS TRUE)`;
