import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Connection, ConnectionFields } from '../../core/connections/connection.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../postgres/sql/page-room.ts';
import { containing } from '../../postgres/sql/containing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { readRangeByRange } from '../scopes/range-by-range.ts';

interface ConnectionFilter {
  scope: Scope;
  /** Part of the id or the description, in any letter case. */
  text?: string | undefined;
  /** Only ids after this one. */
  after?: string | undefined;
  limit: number;
  /** Where its bytes end, the list ends. */
  room?: PageRoom;
}

export async function findConnection(db: Executor, id: string): Promise<Connection | null> {
  const [row] = await rowsOf<ConnectionRow>(db)(sql`-- findConnection
    SELECT * FROM connections WHERE id = ${id}`);
  return row ? toConnection(row) : null;
}

/** Ordered by id. */
export async function listConnections(db: Executor, filter: ConnectionFilter): Promise<Connection[]> {
  const { text, after, room } = filter;
  const conditions: SQL[] = [sql`true`];
  if (after !== undefined) conditions.push(sql`id > ${after}`);
  if (text !== undefined)
    conditions.push(sql`(${containing(sql`id`, text)} OR ${containing(sql`description`, text)})`);
  const bytes = rowBytes({ documents: [sql`definition`] });
  const rows = await readRangeByRange(filter, sql`id`, (inRange, limit) => {
    const page = sql`SELECT *, ${bytes} AS row_bytes FROM connections
      WHERE ${sql.join([...conditions, ...inRange], sql` AND `)} ORDER BY id LIMIT ${limit}`;
    const read = () =>
      rowsOf<ConnectionRow & Sized>(db)(sql`-- listConnections
    ${withinRoom(page, sql`p.id`, room)}`);
    return readInRoom(room, read, ({ row_bytes }) => row_bytes);
  });
  return rows.map(toConnection);
}

/** Locks its row until the transaction ends. `toDelete`: no call can name it anew either (`keepNamed`). */
export async function lockConnection(
  tx: Transaction,
  id: string,
  { toDelete }: { toDelete: boolean },
): Promise<Connection | null> {
  await tx.execute(sql`-- lockConnection
    SELECT FROM connections WHERE id = ${id} ${toDelete ? sql`FOR UPDATE` : sql`FOR NO KEY UPDATE`}`);
  // A second statement: the first one's snapshot is older than its lock.
  return findConnection(tx, id);
}

/** What a process has read of a connection; null: nothing yet. */
export interface KnownConnection {
  id: string;
  uid: string | null;
  version: number | null;
  edition: string | null;
}

/** Those of these connections that are not as they are known, and the ids of those that do not exist. */
export async function findChangedConnections(
  db: Executor,
  known: readonly KnownConnection[],
): Promise<{ changed: Connection[]; missing: string[] }> {
  if (known.length === 0) return { changed: [], missing: [] };
  const rows = await rowsOf<{ asked: string } & (ConnectionRow | { id: null })>(
    db,
  )(sql`-- findChangedConnections
    SELECT k.id AS asked, c.*
    FROM unnest(${texts(known.map(({ id }) => id))}, ${uuids(known.map(({ uid }) => uid))}, ${ints(known.map(({ version }) => version))},
      ${uuids(known.map(({ edition }) => edition))})
      AS k(id, uid, version, edition)
    LEFT JOIN connections c ON c.id = k.id
    WHERE c.id IS NULL OR (c.uid, c.version, c.edition) IS DISTINCT FROM (k.uid, k.version, k.edition)`);
  return {
    changed: rows.flatMap((row) => (row.id === null ? [] : [toConnection(row)])),
    missing: rows.flatMap(({ asked, id }) => (id === null ? [asked] : [])),
  };
}

export interface ConnectionRow {
  id: string;
  uid: string;
  description: string | null;
  url: string;
  definition: Omit<ConnectionFields, 'url'>;
  version: number;
  edition: string | null;
  updated_at: InstantText;
  placed_at: InstantText;
}

export function toConnection(row: ConnectionRow): Connection {
  const { uid, id, description, url, definition, version, edition, updated_at, placed_at } = row;
  const times = { updatedAt: toInstant(updated_at), placedAt: toInstant(placed_at) };
  return { uid, id, description, url, ...definition, version, edition, ...times };
}
