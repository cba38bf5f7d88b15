import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import { containing } from '../../postgres/sql/containing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type PageRoom, type Sized, readInRoom, withinRoom } from '../../postgres/sql/page-room.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
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
  /** A statement that completes rows of `page`, as `n`; `row_bytes`: of what may be large in them. `scope`: whose runs are counted. */
  whole: (page: SQL, scope: Scope) => SQL;
  toThing(row: object): Thing;
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

export async function findNamed<Thing>(
  db: Executor,
  rows: NamedRows<Thing>,
  { id, scope = null }: { id: string; scope?: Scope },
): Promise<Thing | null> {
  const page = sql`SELECT * FROM ${sql.raw(rows.table)} WHERE id = ${id}`;
  const [row] = await rowsOf<object>(db)(sql`-- findNamed
    ${rows.whole(page, scope)}`);
  return row === undefined ? null : rows.toThing(row);
}

/** Ordered by id. */
export async function listNamed<Thing>(
  db: Executor,
  kind: NamedRows<Thing>,
  filter: NamedFilter,
): Promise<Thing[]> {
  const { scope, text, after, room } = filter;
  const conditions: SQL[] = [sql`true`];
  if (after !== undefined) conditions.push(sql`id > ${after}`);
  if (text !== undefined)
    conditions.push(sql`(${containing(sql`id`, text)} OR ${containing(sql`description`, text)})`);
  const rows = await readRangeByRange(filter, sql`id`, (inRange, limit) => {
    const where = sql.join([...conditions, ...inRange], sql` AND `);
    const page = sql`SELECT * FROM ${sql.raw(kind.table)} WHERE ${where} ORDER BY id LIMIT ${limit}`;
    const read = () =>
      rowsOf<Sized>(db)(sql`-- listNamed
    ${withinRoom(sql`${kind.whole(page, scope)} ORDER BY n.id`, sql`p.id`, room)}`);
    return readInRoom(room, read, ({ row_bytes }) => row_bytes);
  });
  return rows.map((row) => kind.toThing(row));
}

/** Locks its row until the transaction ends. `toDelete`: no call can name it anew either (`keepNamed`). */
export async function lockNamed<Thing>(
  tx: Transaction,
  rows: NamedRows<Thing>,
  { id, scope = null, toDelete = false }: { id: string; scope?: Scope; toDelete?: boolean },
): Promise<Thing | null> {
  await tx.execute(sql`-- lockNamed
    SELECT FROM ${sql.raw(rows.table)} WHERE id = ${id} ${toDelete ? sql`FOR UPDATE` : sql`FOR NO KEY UPDATE`}`);
  // A second statement: the first one's snapshot is older than its lock.
  return findNamed(tx, rows, { id, scope });
}

/** The caller has locked its row, and nothing names it. */
export async function deleteNamed(tx: Transaction, table: NamedTable, id: string): Promise<void> {
  await tx.execute(sql`-- deleteNamed
    DELETE FROM ${sql.raw(table)} WHERE id = ${id}`);
}
