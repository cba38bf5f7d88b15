import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type PageRoom, containing, readInRoom, withinRoom } from '../../postgres/sql/lists.ts';
import { type InstantText, onlyColumnOf, recordsOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { namesSeen, readRangeByRange, runsInScope } from '../scopes/in-scope.ts';
import { laneOfConnection } from '../../core/connections/connection.ts';
import { BEFORE_SCOPE } from '../../core/runs/run-lane.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';

/** What has a name that others say: a calendar, a limit, a connection or a notifier. */
export interface NamedThing {
  id: string;
  version: number;
  updatedAt: Instant;
}

/** Where the things of a kind stand, and how one is read. */
export interface NamedRows<Thing> {
  table: NamedTable;
  /** A statement that makes things of rows of `page`; `row_bytes`: of what may be large in them. `scope`: whose runs are counted. */
  whole: (page: SQL, scope: Scope) => SQL;
  /** What is written of a thing beside what all have: by the name of its column. */
  columnsOf: (thing: Thing) => Readonly<Record<string, SQL | string | number | boolean | null>>;
}

interface NamedFilter {
  scope: Scope;
  /** Part of the id or the description, in any letter case. */
  text?: string | undefined;
  /** Only ids after this one. */
  after?: string | undefined;
  limit: number;
  /** Where its bytes end, the list ends. */
  room?: PageRoom;
}

export async function findNamed<Thing extends NamedThing>(
  db: Executor,
  rows: NamedRows<Thing>,
  { id, scope = null }: { id: string; scope?: Scope },
): Promise<Thing | null> {
  const page = sql`SELECT * FROM ${sql.raw(rows.table)} WHERE id = ${id}`;
  const [thing = null] = await recordsOf<Thing>(db)(sql`-- findNamed
    ${rows.whole(page, scope)}`);
  return thing;
}

/** Ordered by id. */
export function listNamed<Thing extends NamedThing>(
  db: Executor,
  kind: NamedRows<Thing>,
  filter: NamedFilter,
): Promise<Thing[]> {
  const { scope, text, after, room } = filter;
  const conditions: SQL[] = [sql`true`];
  if (after !== undefined) conditions.push(sql`id > ${after}`);
  if (text !== undefined) conditions.push(sql`(${containing(sql`id`, text)} OR ${containing(sql`description`, text)})`);
  return readRangeByRange(filter, sql`id`, (inRange, limit) => {
    const where = sql.join([...conditions, ...inRange], sql` AND `);
    const page = sql`SELECT * FROM ${sql.raw(kind.table)} WHERE ${where} ORDER BY id LIMIT ${limit}`;
    const read = () =>
      recordsOf<Thing & { rowBytes: number }>(db)(sql`-- listNamed
    ${withinRoom(sql`${kind.whole(page, scope)} ORDER BY n.id`, sql`p.id`, room)}`);
    return readInRoom(room, read, ({ rowBytes }) => rowBytes);
  });
}

/** Locks its row until the transaction ends. `toDelete`: no call can name it anew either (`keepNamed`). */
export async function lockNamed<Thing extends NamedThing>(
  tx: Transaction,
  rows: NamedRows<Thing>,
  { id, scope = null, toDelete = false }: { id: string; scope?: Scope; toDelete?: boolean },
): Promise<Thing | null> {
  await tx.execute(sql`-- lockNamed
    SELECT FROM ${sql.raw(rows.table)} WHERE id = ${id} ${toDelete ? sql`FOR UPDATE` : sql`FOR NO KEY UPDATE`}`);
  // A second statement: the first one's snapshot is older than its lock.
  return findNamed(tx, rows, { id, scope });
}

/** Writes it: anew, or where the caller has locked its row. @throws TryAgain if another caller has just created one of that id */
export async function writeNamedRow<Thing extends NamedThing>(
  tx: Transaction,
  { table, columnsOf }: NamedRows<Thing>,
  thing: Thing,
  { isNew }: { isNew: boolean },
): Promise<void> {
  const { id, version, updatedAt } = thing;
  const written = { id, version, updated_at: isoInstant(updatedAt), ...columnsOf(thing) };
  const names = sql.raw(Object.keys(written).join(', '));
  const values = sql.join(
    Object.values(written).map((value) => sql`${value}`),
    sql`, `,
  );
  const rows = await rowsOf(tx)(sql`-- writeNamedRow
    ${
      isNew
        ? sql`INSERT INTO ${sql.raw(table)} (${names}) VALUES (${values}) ON CONFLICT DO NOTHING`
        : sql`UPDATE ${sql.raw(table)} SET (${names}) = ROW(${values}) WHERE id = ${id}`
    } RETURNING id`);
  if (rows.length === 0) throw new TryAgain(`another call has just written what ${table} has as ${id}`);
}

/** The caller has locked its row, and nothing names it. */
export async function deleteNamed(tx: Transaction, table: NamedTable, id: string): Promise<void> {
  await tx.execute(sql`-- deleteNamed
    DELETE FROM ${sql.raw(table)} WHERE id = ${id}`);
}

/** What schedules, runs and notifiers name by its id, and what must be there for as long as they do. */
export type NamedTable = 'calendars' | 'limits' | 'connections' | 'notifiers';

const NAMES: Readonly<Record<Exclude<NamedTable, 'notifiers'>, (id: string, namers: 'schedules' | 'runs') => SQL>> = {
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
  if (table === 'notifiers') return { schedules: [], runs: [], notifiers: await fallbacksTo(tx, named, most) };
  const idsOf = async (namers: 'schedules' | 'runs', uid: string, version: string) => {
    const counts = which === 'all' ? sql`true` : hasSecretValues(sql.raw(uid), sql.raw(version));
    return onlyColumnOf<string>(tx)(sql`-- namersOf
      SELECT id::text FROM ${sql.raw(namers)} WHERE ${all(NAMES[table](id, namers), [counts, ...SEEN[namers](scope)])} ORDER BY id LIMIT ${most}`);
  };
  const ofNotifiers = table === 'connections' ? await notifiersNaming(tx, named, most) : NONE;
  return {
    schedules: await idsOf('schedules', 'schedules.uid', 'schedules.version'),
    runs: [...(await idsOf('runs', 'runs.schedule_uid', 'runs.schedule_version')), ...ofNotifiers.messages].slice(
      0,
      most,
    ),
    notifiers: ofNotifiers.notifiers,
  };
}

const SEEN: Readonly<Record<'schedules' | 'runs', (scope: Scope) => SQL[]>> = {
  schedules: (scope) => namesSeen(sql`schedules.id`, scope),
  runs: (scope) =>
    runsInScope(scope, 'read').map((isSeen) => sql`EXISTS (SELECT FROM runs r WHERE r.id = runs.id AND ${isSeen})`),
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
  const notifiers = await onlyColumnOf<string>(tx)(sql`-- notifiersNaming
    SELECT n.id FROM notifiers n WHERE ${all(names(sql`n.uid`, sql`n.version`), namesSeen(sql`n.id`, scope))} ORDER BY n.id LIMIT ${most}`);
  const messages = await onlyColumnOf<string>(tx)(sql`-- notifiersNaming
    SELECT r.id::text FROM notifiers n JOIN runs r ON r.schedule_uid = n.uid AND r.trigger NOT IN ('schedule', 'catchUp', 'backfill')
    WHERE ${all(names(sql`r.schedule_uid`, sql`r.schedule_version`), runsInScope(scope, 'read'))} ORDER BY r.id LIMIT ${most}`);
  return { notifiers, messages };
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
export async function keepPlaced(tx: Executor, ids: readonly string[]): Promise<ReadonlyMap<string, Instant>> {
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
export async function keepNamed(tx: Executor, table: NamedTable, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- keepNamed
    SELECT id FROM ${sql.raw(table)} WHERE id = ANY (${texts([...new Set(ids)])}) ORDER BY id FOR KEY SHARE`);
  return new Set(found);
}
