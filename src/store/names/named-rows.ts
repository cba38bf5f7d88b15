import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { laneOfConnection } from '../../core/connections/connection.ts';
import type { Instant } from '../../core/instant.ts';
import { BEFORE_SCOPE } from '../../core/runs/run-lane.ts';
import type { Executor } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { type InstantText, onlyColumnOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { namesSeen, runsInScope } from '../scopes/in-scope.ts';

/** What schedules, runs and notifiers name by its id, and what must be there for as long as they do. */
export type NamedTable = 'calendars' | 'limits' | 'connections' | 'notifiers';

const NAMES: Readonly<
  Record<Exclude<NamedTable, 'notifiers'>, (id: string, namers: 'schedules' | 'runs') => SQL>
> = {
  // Of runs, their schedule does.
  calendars: (id, namers) =>
    namers === 'schedules'
      ? sql`uid IN (SELECT schedule_uid FROM schedule_calendars WHERE calendar_id = ${id})`
      : sql`false`,
  limits: (id) => sql`limit_id = ${id}`,
  // The second condition is that of the index. The lane of a run may end with its scope.
  connections: (id, namers) =>
    namers === 'schedules'
      ? sql`lane = ${laneOfConnection(id)} AND starts_with(lane, 'http connection ')`
      : sql`(lane = ${laneOfConnection(id)} OR starts_with(lane, ${laneOfConnection(id) + BEFORE_SCOPE}))`,
};

/** `withSecrets`: those whose definition has secret values of its own. */
interface Named {
  table: NamedTable;
  id: string;
  which: 'all' | 'withSecrets';
  /** Only what a caller of this scope sees. */
  scope: Scope;
}

/** Ids of what names it. */
export interface Namers {
  schedules: string[];
  /** Open ones. */
  runs: string[];
  notifiers: string[];
}

/** At most `most` of each. */
export async function namersOf(tx: Executor, named: Named, most: number): Promise<Namers> {
  const { table, id, which, scope } = named;
  if (table === 'notifiers')
    return { schedules: [], runs: [], notifiers: await fallbacksTo(tx, named, most) };
  const idsOf = async (namers: 'schedules' | 'runs', uid: string, version: string) => {
    const counts = which === 'all' ? sql`true` : hasSecretValues(sql.raw(uid), sql.raw(version));
    return onlyColumnOf<string>(tx)(sql`-- namersOf
      SELECT id::text FROM ${sql.raw(namers)} WHERE ${all(NAMES[table](id, namers), [counts, ...SEEN[namers](scope)])} ORDER BY id LIMIT ${most}`);
  };
  const ofNotifiers = table === 'connections' ? await notifiersNaming(tx, named, most) : NONE;
  return {
    schedules: await idsOf('schedules', 'schedules.uid', 'schedules.version'),
    runs: [
      ...(await idsOf('runs', 'runs.schedule_uid', 'runs.schedule_version')),
      ...ofNotifiers.messages,
    ].slice(0, most),
    notifiers: ofNotifiers.notifiers,
  };
}

const SEEN: Readonly<Record<'schedules' | 'runs', (scope: Scope) => SQL[]>> = {
  schedules: (scope) => namesSeen(sql`schedules.id`, scope),
  runs: (scope) =>
    runsInScope(scope, 'read').map(
      (isSeen) => sql`EXISTS (SELECT FROM runs r WHERE r.id = runs.id AND ${isSeen})`,
    ),
};

const NONE = { notifiers: [], messages: [] };

async function fallbacksTo(tx: Executor, { id, scope }: Named, most: number): Promise<string[]> {
  return onlyColumnOf<string>(tx)(sql`-- fallbacksTo
    SELECT id FROM notifiers WHERE ${all(sql`fallback = ${id}`, namesSeen(sql`id`, scope))} ORDER BY id LIMIT ${most}`);
}

/** Notifiers whose target names this connection, and open messages that do: the lane of those names the notifier. */
async function notifiersNaming(
  tx: Executor,
  { id, which, scope }: Named,
  most: number,
): Promise<{ notifiers: string[]; messages: string[] }> {
  const names = (uid: SQL, version: SQL) => sql`EXISTS (SELECT FROM schedule_versions v
      WHERE v.schedule_uid = ${uid} AND v.version = ${version}
        AND v.definition #>> '{target,connection}' = ${id})
    AND ${which === 'all' ? sql`true` : hasSecretValues(uid, version)}`;
  const notifiers = await rowsOf<{ id: string }>(tx)(sql`-- notifiersNaming
    SELECT n.id FROM notifiers n WHERE ${all(names(sql`n.uid`, sql`n.version`), namesSeen(sql`n.id`, scope))} ORDER BY n.id LIMIT ${most}`);
  const messages = await rowsOf<{ id: string }>(tx)(sql`-- notifiersNaming
    SELECT r.id::text FROM notifiers n JOIN runs r ON r.schedule_uid = n.uid AND r.trigger NOT IN ('schedule', 'catchUp', 'backfill')
    WHERE ${all(names(sql`r.schedule_uid`, sql`r.schedule_version`), runsInScope(scope, 'read'))} ORDER BY r.id LIMIT ${most}`);
  return { notifiers: notifiers.map((row) => row.id), messages: messages.map((row) => row.id) };
}

function all(first: SQL, others: readonly SQL[]): SQL {
  return sql.join([first, ...others], sql` AND `);
}

/** The uids of those of these notifiers that exist; keeps them as `keepNamed` does. */
export async function keepNotifiers(tx: Executor, asked: readonly string[]): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- keepNotifiers
    SELECT uid FROM notifiers WHERE uid = ANY (${uuids([...new Set(asked)])}) ORDER BY id FOR KEY SHARE`);
  return new Set(found);
}

/** Since when each of these connections has its origin; keeps them as `keepNamed` does. */
export async function keepPlaced(
  tx: Executor,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Instant>> {
  const rows = await rowsOf<{ id: string; placed_at: InstantText }>(tx)(sql`-- keepPlaced
    SELECT id, placed_at FROM connections WHERE id = ANY (${texts([...new Set(ids)])}) ORDER BY id FOR KEY SHARE`);
  return new Map(rows.map(({ id, placed_at }) => [id, toInstant(placed_at)]));
}

/** Whether the definition of this version has secret values (core/schedules/target-secrets.ts). */
function hasSecretValues(uid: SQL, version: SQL): SQL {
  const headers = (call: SQL) => sql`coalesce(${call} -> 'headers', '{}') <> '{}'`;
  const values = (target: SQL) =>
    sql`${headers(target)} OR ${headers(sql`${target} -> 'lookup'`)} OR ${headers(sql`${target} -> 'cancel'`)}
          OR coalesce(${target} -> 'secret', 'null') <> 'null' OR coalesce(${target} #> '{body,secrets}', '{}') <> '{}'`;
  const target = sql`v.definition -> 'target'`;
  return sql`EXISTS (SELECT FROM schedule_versions v WHERE v.schedule_uid = ${uid} AND v.version = ${version}
        AND (${values(target)}))`;
}

/** Which of these exist; keeps them from being deleted until the transaction ends. Waits for a deletion under way. */
export async function keepNamed(
  tx: Executor,
  table: NamedTable,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- keepNamed
    SELECT id FROM ${sql.raw(table)} WHERE id = ANY (${texts([...new Set(ids)])}) ORDER BY id FOR KEY SHARE`);
  return new Set(found);
}
