import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../../core/access/scope.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../../postgres/sql/rows.ts';
import { labelled } from '../../schedules/search/schedule-conditions.ts';
import { namesOwned, runsInScope } from '../../scopes/in-scope.ts';
import { fewLabelled, isItselfLabelled, labelledThemselves } from './labelled-runs.ts';
import { newestFirst, newestOfParts, type PagePart, type RunFilter } from './run-pages.ts';
import { allInScope } from './runs-in-scope.ts';
import { inBoth } from './runs-of-schedule.ts';
import type { OfSchedule } from '../../../core/runs/new-run.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { RunStatus } from '../../../core/runs/run.ts';
import { texts, uuids } from '../../../postgres/sql/arrays.ts';
import { lockEndedRuns, lockOpenRuns } from '../lock-and-save.ts';
import { OF_SCHEDULE } from '../record-columns.ts';

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
      ? [sql`((c.schedule_uid IN (${labelled(labels, named)})) IS TRUE OR ${isItselfLabelled(sql`c.id`, labels)})`]
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

const LOCK_IN = { runs: lockOpenRuns, history: lockEndedRuns };

/**
 * Of these runs those in one of these statuses: their rows locked, or the ids of those that another transaction has locked. What is in
 * neither answer has another status by now. All statuses are of one table.
 */
export async function lockFreeRuns(
  tx: Transaction,
  table: 'runs' | 'history',
  { ids, statuses }: { ids: readonly string[]; statuses: readonly RunStatus[] },
): Promise<{ free: RunRecord[]; locked: string[] }> {
  const rows = await LOCK_IN[table](tx, ids, 'skipLocked');
  const had = new Set(rows.map(({ id }) => id));
  const missing = ids.filter((id) => !had.has(id));
  const locked =
    missing.length === 0
      ? []
      : await onlyColumnOf<string>(tx)(sql`-- lockFreeRuns
        SELECT id FROM ${sql.raw(table)} WHERE id = ANY (${uuids(missing)}) AND status = ANY (${texts(statuses)})`);
  return { free: rows.filter(({ status }) => statuses.includes(status)), locked };
}

/**
 * What runs of the schedules of these ended runs go by now, by uid. The schedules' rows are shared until the transaction ends, so that it
 * stays so; `locked`: another transaction has them. A schedule in neither answer is gone.
 */
export async function shareFreeDefinitions(
  tx: Transaction,
  runIds: readonly string[],
): Promise<{ free: ReadonlyMap<string, OfSchedule>; locked: ReadonlySet<string> }> {
  const uids = await onlyColumnOf<string>(tx)(sql`-- shareFreeDefinitions
    SELECT s.uid FROM schedules s WHERE s.uid IN (SELECT schedule_uid FROM history WHERE id = ANY (${uuids(runIds)}))`);
  const rows = await recordsOf<OfSchedule>(tx)(sql`-- shareFreeDefinitions
    SELECT ${OF_SCHEDULE} FROM schedules s WHERE s.uid = ANY (${uuids(uids)}) ORDER BY s.uid FOR SHARE SKIP LOCKED`);
  const free = new Map(rows.map((row) => [row.scheduleUid, row]));
  return { free, locked: new Set(uids.filter((uid) => !free.has(uid))) };
}
