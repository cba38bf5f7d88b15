import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { labelled } from '../../schedules/search/labelled-schedules.ts';
import { namesOwned, runsInScope } from '../../scopes/in-scope.ts';
import { fewLabelled, isItselfLabelled, labelledThemselves } from './labelled-runs.ts';
import { type PagePart, type RunFilter, newestFirst, newestOfParts } from './run-pages.ts';
import { allInScope } from './runs-in-scope.ts';
import { inBoth } from './runs-of-schedule.ts';

export interface MatchingRuns {
  /** Counted up to a bound. */
  matched: number;
  /** The newest of them, newest first. */
  ids: string[];
}

/**
 * How many runs match that a caller of the scope may act on, and the first `limit` of them. `scheduleIsThere`: without runs of deleted
 * schedules. For some statuses other than `succeeded`, these have indexes.
 */
export async function matchingRuns(
  db: Executor,
  { limit, scope, ...filter }: RunFilter & { scope: Scope },
  { countTo, scheduleIsThere }: { countTo: number; scheduleIsThere: boolean },
): Promise<MatchingRuns> {
  const { labels = [] } = filter;
  const named = namesOwned(sql`s.id`, scope);
  const few = labels.length > 0 ? await fewLabelled(db, filter, { labels, named }) : null;
  const own = labels.length > 0 ? await labelledThemselves(db, filter, labels, { scope, use: 'act' }) : [];
  const scheduleUids = few ?? filter.scheduleUids;
  const isNone = scheduleUids?.length === 0 && own.length === 0;
  if (isNone || filter.ids?.length === 0 || filter.statuses?.length === 0) return { matched: 0, ids: [] };
  const ofMany = labels.length > 0 && few === null;
  const conditions = [
    // Not as a join: the planner knows too little of labels to choose one. So the schedules are hashed, once.
    ...(ofMany
      ? [
          sql`((c.schedule_uid IN (${labelled(labels, named)})) IS TRUE OR ${isItselfLabelled(sql`c.id`, labels)})`,
        ]
      : []),
    ...(scheduleIsThere ? [SCHEDULE_IS_THERE] : []),
  ];
  const all = { ...filter, scheduleUids, limit: conditions.length > 0 ? Number.MAX_SAFE_INTEGER : countTo };
  const candidates = await candidatesOf(db, all, { scope, own: few ? own : [] });
  if (candidates === null) return { matched: 0, ids: [] };
  const where = conditions.length > 0 ? sql`WHERE ${sql.join(conditions, sql` AND `)}` : sql``;
  const [row] = await rowsOf<{ matched: number; ids: string | null }>(db)(sql`-- matchingRuns
    WITH candidates AS MATERIALIZED (${candidates}),
      matching AS MATERIALIZED (SELECT c.id FROM candidates c ${where} ORDER BY c.id DESC LIMIT ${countTo})
    SELECT (SELECT count(*)::int FROM matching) AS matched,
      (SELECT string_agg(f.id::text, ',' ORDER BY f.id DESC) FROM (SELECT id FROM matching ORDER BY id DESC LIMIT ${limit}) AS f) AS ids`);
  return { matched: row?.matched ?? 0, ids: row?.ids?.split(',') ?? [] };
}

/** Runs that a caller of this scope may act on; `own`: besides those of the schedules. Null: there are none. */
async function candidatesOf(
  db: Executor,
  filter: RunFilter,
  { scope, own }: { scope: Scope; own: readonly PagePart[] },
): Promise<SQL | null> {
  const columns = inBoth(sql`r.id, r.schedule_uid, r.schedule_id`);
  if (own.length > 0) {
    const ofSchedules = { filter, more: { conditions: runsInScope(scope, 'act') } };
    const parts = filter.scheduleUids?.length === 0 ? own : [ofSchedules, ...own];
    return newestOfParts(parts, filter, columns);
  }
  if (scope !== null && !filter.scheduleUids && !filter.ids)
    return allInScope(db, filter, { scope, use: 'act' }, columns);
  return newestFirst(filter, { columns, conditions: runsInScope(scope, 'act') });
}

const SCHEDULE_IS_THERE = sql`(c.schedule_id = '' OR (c.schedule_uid IN (SELECT uid FROM schedules)) IS TRUE)`;
