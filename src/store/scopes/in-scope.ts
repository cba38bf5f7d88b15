import { type SQL, sql } from 'drizzle-orm';
import { type NameRange, type Scope, rangesOf, seenPrefixes } from '../../core/access/scope.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { laneOfQueue } from '../../core/runs/queue-lane.ts';

/**
 * Conditions for a WHERE: the one place where a scope becomes SQL. Without a scope there are none, so that the statement stays as it is.
 */

/** Names in this column, of the collation "C", that a caller of this scope may read. */
export function namesSeen(column: SQL, scope: Scope): SQL[] {
  return scope === null ? [] : [isAmong(column, rangesOf(seenPrefixes(scope)))];
}

/** Names in this column, of the collation "C", of what a caller of this scope may change. */
export function namesOwned(column: SQL, scope: Scope): SQL[] {
  return scope === null ? [] : [isAmong(column, rangesOf(scope))];
}

/** What a caller does with a run: reads it, acts on it, or works on it and reports. */
export type RunUse = 'read' | 'act' | 'work';

/** Runs `r` of `runs` or `history` that a caller of this scope may use so. */
export function runsInScope(scope: Scope, use: RunUse): SQL[] {
  if (scope === null) return [];
  const owned = rangesOf(scope);
  const named = use === 'read' ? rangesOf(seenPrefixes(scope)) : owned;
  const conditions = [
    isAmong(sql`r.schedule_id`, named),
    sql`r.trigger = 'api' AND ${isAmong(sql`r.key COLLATE "C"`, named)}`,
    // A message may tell of anything: who may only name its notifier does not read it.
    sql`r.trigger = 'notify' AND ${isAmong(sql`r.notifier_id`, owned)}`,
    ...(use === 'work' ? [isAmong(sql`r.lane COLLATE "C"`, owned.map(queuesOf))] : []),
  ];
  return [sql`(${sql.join(conditions, sql` OR `)})`];
}

/** Whether there is such a run. What decides that never changes: so it may be asked ahead of any transaction. */
export async function isRunInScope(db: Executor, id: string, scope: Scope, use: RunUse): Promise<boolean> {
  const conditions = [sql`r.id = ${id}::uuid`, ...runsInScope(scope, use)];
  const rows = await rowsOf(db)(sql`-- isRunInScope
    SELECT 1 FROM all_runs r WHERE ${sql.join(conditions, sql` AND `)}`);
  return rows.length > 0;
}

function queuesOf({ from, end }: NameRange): NameRange {
  return { from: laneOfQueue(from), end: laneOfQueue(end) };
}

function isAmong(column: SQL, ranges: readonly NameRange[]): SQL {
  const each = ranges.map((range) => isWithin(column, range));
  return sql`(${sql.join(each, sql` OR `)})`;
}

/** Names in this column, of the collation "C", that are in the range. */
export function isWithin(column: SQL, { from, end }: NameRange): SQL {
  return sql`${column} >= ${from} AND ${column} < ${end}`;
}
