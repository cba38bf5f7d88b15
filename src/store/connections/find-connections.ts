import { type SQL, sql } from 'drizzle-orm';
import type { Connection, ConnectionFields } from '../../core/connections/connection.ts';
import { isoInstant } from '../../core/instant.ts';
import type { Executor } from '../../postgres/executor.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { rowBytes } from '../../postgres/sql/lists.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import type { NamedRows } from '../names/named-rows.ts';

export const CONNECTION_ROWS: NamedRows<Connection> = {
  table: 'connections',
  whole: (page) =>
    sql`SELECT ${columnsIn(sql`n`)}, ${rowBytes({ documents: [sql`n.definition`] })} AS row_bytes FROM (${page}) AS n`,
  columnsOf: ({ uid, description, url, edition, placedAt, ...fields }) => ({
    ...{
      uid,
      description,
      url,
      edition,
      placed_at: isoInstant(placedAt),
      definition: definitionText(fields),
    },
  }),
};

/** A connection of a row of that name. */
export function columnsIn(row: SQL): SQL {
  const member = (name: string) => sql`${row}.definition->${sql.raw(`'${name}'`)}`;
  return sql`${row}.id, ${row}.uid, ${row}.description, ${row}.url, ${row}.version, ${row}.edition, ${row}.updated_at, ${row}.placed_at,
    ${member('urlSeal')} AS url_seal, ${member('headers')} AS headers, ${member('auth')} AS auth, ${member('tls')} AS tls`;
}

/** As the column `definition` has it. */
export function definitionText({ urlSeal, headers, auth, tls }: Omit<ConnectionFields, 'url'>): string {
  return JSON.stringify({ urlSeal, headers, auth, tls });
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
  type Row = { asked: string } & (Connection | { id: null });
  const rows = await recordsOf<Row>(db)(sql`-- findChangedConnections
    SELECT k.id AS asked, ${columnsIn(sql`c`)}
    FROM unnest(${texts(known.map(({ id }) => id))}, ${uuids(known.map(({ uid }) => uid))}, ${ints(known.map(({ version }) => version))},
      ${uuids(known.map(({ edition }) => edition))})
      AS k(id, uid, version, edition)
    LEFT JOIN connections c ON c.id = k.id
    WHERE c.id IS NULL OR (c.uid, c.version, c.edition) IS DISTINCT FROM (k.uid, k.version, k.edition)`);
  return {
    changed: rows.flatMap(({ asked: _asked, ...row }) => (row.id === null ? [] : [row])),
    missing: rows.flatMap(({ asked, id }) => (id === null ? [asked] : [])),
  };
}
