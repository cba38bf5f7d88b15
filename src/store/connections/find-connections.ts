import { sql } from 'drizzle-orm';
import type { Connection, ConnectionFields } from '../../core/connections/connection.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowBytes } from '../../postgres/sql/page-room.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import type { NamedRows } from '../names/find-named.ts';

export const CONNECTION_ROWS: NamedRows<Connection> = {
  table: 'connections',
  whole: (page) =>
    sql`SELECT n.*, ${rowBytes({ documents: [sql`n.definition`] })} AS row_bytes FROM (${page}) AS n`,
  toThing: toConnection,
};

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
