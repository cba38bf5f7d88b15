import { type SQL, sql } from 'drizzle-orm';
import {
  type NameRange,
  type Scope,
  isAfterRange,
  prefixRanges,
  seenPrefixes,
  type ScopeShares,
} from '../../core/access/scope.ts';
import { BEFORE_SCOPE, laneOfQueue } from '../../core/runs/run-lane.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';

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
  const found = await onlyColumnOf<string>(db)(sql`-- runsSeen
    SELECT r.id FROM all_runs r WHERE ${sql.join(conditions, sql` AND `)}`);
  return new Set(found);
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

/** How many schedules have an id that begins with this, up to one more than `most`: it reads no more of them. */
export async function countSchedulesUnderLock(tx: Transaction, prefix: string, most: number): Promise<number> {
  await tx.execute(sql`-- countSchedulesUnderLock
    SELECT pg_advisory_xact_lock(hashtext('firelock scope ' || ${prefix} || ' ' || current_schema()))`);
  // A statement of its own: it sees what the last holder of the lock has written.
  const [row] = await rowsOf<{ count: number }>(tx)(sql`-- countSchedulesUnderLock
    SELECT count(*)::int AS count FROM (SELECT FROM schedules WHERE ${beginsWith(sql`id`, prefix)} LIMIT ${most + 1}) AS found`);
  return row?.count ?? 0;
}

/** How many open runs each of these scopes has: of schedules by their ids, and one-off runs by their keys. One look at all open runs. */
export async function countOpenRunsOf(db: Executor, prefixes: readonly string[]): Promise<number[]> {
  const counts = prefixes.map(
    (prefix) =>
      sql`count(*) FILTER (WHERE ${beginsWith(sql`schedule_id`, prefix)}
        OR trigger = 'api' AND ${beginsWith(sql`key COLLATE "C"`, prefix)})::int`,
  );
  const [row] = await rowsOf<{ counts: string }>(db)(sql`-- countOpenRunsOf
    SELECT concat_ws(',', ${sql.join(counts, sql`, `)}) AS counts FROM runs`);
  return row?.counts.split(',').map(Number) ?? [];
}

function beginsWith(column: SQL, prefix: string): SQL {
  return sql.join(namesOwned(column, [prefix]));
}

/**
 * The column `lane` of a run of the schedule `s`, as `laneInScope` says it. A schedule's own lane has no scope: so a changed
 * FIRELOCK_SCOPES holds from the next run on, and instances with different values do not undo what the other one wrote.
 */
export function laneOfRun(shares: ScopeShares): SQL {
  if (shares.length === 0) return sql`s.lane`;
  // No prefix contains a quote. As literals they leave the statement's text the same for as long as the process lives.
  const scopes = shares.map(({ prefix }) => `WHEN starts_with(s.id, '${prefix}') THEN '${BEFORE_SCOPE}${prefix}'`);
  return sql.raw(`s.lane || CASE WHEN starts_with(s.lane, '${laneOfQueue('')}') THEN ''
          ${scopes.join('\n          ')} ELSE '' END AS lane`);
}

/**
 * Schedules that belong to this one of the scopes, the rest among them: whose longest prefix it is. As ranges of ids, and as literals: the
 * server can tell from its statistics how many rows these are, and finds few of them by an index of ids.
 */
export function isOfScope(prefix: string, scopes: readonly string[]): SQL {
  const longer = scopes.filter((other) => other !== prefix && other.startsWith(prefix));
  const [whole] = prefixRanges(prefix === '' ? [] : [prefix]);
  const parts: string[] = [];
  let from = whole?.from;
  for (const hole of prefixRanges(longer)) {
    parts.push(between(from, hole.from));
    from = hole.end;
  }
  parts.push(between(from, whole?.end));
  return sql.raw(`(${parts.join(' OR ')})`);
}

function between(from: string | undefined, end: string | undefined): string {
  const bounds = [...(from === undefined ? [] : [`id >= '${from}'`]), ...(end === undefined ? [] : [`id < '${end}'`])];
  return bounds.length === 0 ? 'true' : bounds.join(' AND ');
}
