import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type PageRoom, containing, readInRoom, withinRoom } from '../../postgres/sql/lists.ts';
import { recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { readRangeByRange } from '../scopes/in-scope.ts';
import type { NamedTable } from './named-rows.ts';

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
  if (text !== undefined)
    conditions.push(sql`(${containing(sql`id`, text)} OR ${containing(sql`description`, text)})`);
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
