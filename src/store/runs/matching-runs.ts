import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { labelled } from '../schedules/labelled-schedules.ts';
import { fewLabelled } from './labelled-runs.ts';
import { type RunFilter, newestFirst } from './run-pages.ts';

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
  const also: SQL[] = [];
  if (labels.length > 0 && few === null) also.push(sql`r.schedule_uid IN (${labelled(labels)})`);
  if (scheduleIsThere) also.push(SCHEDULE_IS_THERE);
  const matching = newestFirst({ ...filter, scheduleUids, limit: countTo }, { also });
  const [row] = await rowsOf<{ matched: number; ids: string | null }>(
    db,
    sql`WITH matching AS MATERIALIZED (${matching})
    SELECT (SELECT count(*)::int FROM matching) AS matched,
      (SELECT string_agg(f.id::text, ',' ORDER BY f.id DESC) FROM (SELECT id FROM matching ORDER BY id DESC LIMIT ${limit}) AS f) AS ids`,
  );
  return { matched: row?.matched ?? 0, ids: row?.ids?.split(',') ?? [] };
}

const SCHEDULE_IS_THERE = sql`(r.schedule_id = '' OR EXISTS (SELECT FROM schedules o WHERE o.uid = r.schedule_uid))`;
