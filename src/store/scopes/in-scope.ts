import { type SQL, sql } from 'drizzle-orm';
import {
  type NameRange,
  type Scope,
  prefixRanges,
  seenPrefixes,
  isAfterRange,
} from '../../core/access/scope.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { laneOfQueue } from '../../core/runs/run-lane.ts';

/**
 * Conditions for a WHERE: the one place where a scope becomes SQL. Without a scope there are none, so that the statement stays as it is.
 */

/** Names in this column, of the collation "C", that a caller of this scope may read. */
export function namesSeen(column: SQL, scope: Scope): SQL[] {
  return scope === null ? [] : [isAmong(column, prefixRanges(seenPrefixes(scope)))];
}

/** Names in this column, of the collation "C", of what a caller of this scope may change. */
export function namesOwned(column: SQL, scope: Scope): SQL[] {
  return scope === null ? [] : [isAmong(column, prefixRanges(scope))];
}

/** One condition for each range of what `use` needs: for a part of a statement each, so that each part reads only its range of an index. */
export function eachRange(column: SQL, prefixes: readonly string[], use: RunUse): SQL[] {
  const ranges = prefixRanges(use === 'read' ? seenPrefixes(prefixes) : prefixes);
  return ranges.map((range) => isAmong(column, [range]));
}

/** Lanes, in a column of text, of the queues that a caller of this scope may read. */
export function queuesSeen(lane: SQL, scope: Scope): SQL[] {
  if (scope === null) return [];
  return [isAmong(sql`${lane} COLLATE "C"`, prefixRanges(seenPrefixes(scope)).map(queuesOf))];
}

/** What a caller does with a run: reads it, acts on it, or works on it and reports. */
export type RunUse = 'read' | 'act' | 'work';

/** Runs `r` of `runs` or `history` that a caller of this scope may use so. */
export function runsInScope(scope: Scope, use: RunUse): SQL[] {
  if (scope === null) return [];
  const owned = prefixRanges(scope);
  const named = use === 'read' ? prefixRanges(seenPrefixes(scope)) : owned;
  const conditions = [
    isAmong(sql`r.schedule_id`, named),
    sql`r.trigger = 'api' AND ${isAmong(sql`r.key COLLATE "C"`, named)}`,
    // A message may tell of anything: a caller who may only name its notifier does not read it.
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

/** Whether a caller of this scope may read the run of this id. Evaluated for each row by itself, unlike an EXISTS. */
export function runIsSeen(id: SQL, scope: readonly string[]): SQL {
  const conditions = [sql`r.id = ${id}`, ...runsInScope(scope, 'read')];
  return sql`(SELECT true FROM all_runs r WHERE ${sql.join(conditions, sql` AND `)} LIMIT 1)`;
}

/** Which of these runs a caller with a scope may read; of ids that stand for none, none. */
export async function runsSeen(
  db: Executor,
  ids: readonly string[],
  scope: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const conditions = [sql`r.id = ANY (${uuids(ids)})`, ...runsInScope(scope, 'read')];
  const rows = await rowsOf<{ id: string }>(db)(sql`-- runsSeen
    SELECT r.id FROM all_runs r WHERE ${sql.join(conditions, sql` AND `)}`);
  return new Set(rows.map(({ id }) => id));
}

function queuesOf({ from, end }: NameRange): NameRange {
  return { from: laneOfQueue(from), end: laneOfQueue(end) };
}

function isAmong(column: SQL, ranges: readonly NameRange[]): SQL {
  const each = ranges.map((range) => isWithin(column, range));
  return sql`(${sql.join(each, sql` OR `)})`;
}

/** Names in this column, of the collation "C", that are in the range. */
function isWithin(column: SQL, { from, end }: NameRange): SQL {
  return sql`${column} >= ${from} AND ${column} < ${end}`;
}

interface Page {
  scope: Scope;
  /** Only names after this one. */
  after?: string | null | undefined;
  limit: number;
}

/**
 * A page of what a caller of this scope sees, by name: from range to range until it is full. One statement with all ranges could walk the
 * names between them too. `read` adds the conditions to its own, reads by name and at most `limit`; without a scope there are none.
 */
export async function readRangeByRange<Row>(
  { scope, after, limit }: Page,
  column: SQL,
  read: (conditions: SQL[], limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  if (scope === null) return read([], limit);
  const found: Row[] = [];
  for (const range of prefixRanges(seenPrefixes(scope))) {
    if (after !== undefined && after !== null && isAfterRange(after, range)) continue;
    found.push(...(await read([isWithin(column, range)], limit - found.length)));
    if (found.length >= limit) break;
  }
  return found;
}
