import { sql } from 'drizzle-orm';
import type { Connection } from '../../core/connections/connection.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import { limitLockWaits } from '../../postgres/sql/lock-limit.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { CONNECTION_ROWS, type ConnectionRow, toConnection } from '../connections/find-connections.ts';
import { definitionText } from '../connections/write-connections.ts';
import { listNamed } from '../names/find-named.ts';

/** The next connections by id; `last` is null once all were read. */
export async function pageOfConnections(
  db: Executor,
  { after, limit }: { after: Connection | null; limit: number },
): Promise<{ found: Connection[]; last: Connection | null }> {
  const found = await listNamed(db, CONNECTION_ROWS, { scope: null, after: after?.id, limit });
  return { found, last: found.length < limit ? null : (found.at(-1) ?? null) };
}

/**
 * Locks connections, in the order of their ids, and writes what `anew` makes from their state under the lock. Their
 * versions stay: they say what they said.
 * @throws an error for which isLockedByOthers is true if another transaction has one of them locked for longer than a moment
 */
export async function rewriteConnections(
  tx: Transaction,
  connections: readonly Connection[],
  anew: (stored: Connection) => Connection,
): Promise<void> {
  await limitLockWaits(tx);
  const ids = texts(connections.map(({ id }) => id));
  await tx.execute(sql`-- rewriteConnections
    SELECT FROM connections WHERE id = ANY (${ids}) ORDER BY id FOR NO KEY UPDATE`);
  // In another statement, which sees their present state.
  const rows = await rowsOf<ConnectionRow>(tx)(sql`-- rewriteConnections
    SELECT * FROM connections WHERE id = ANY (${ids})`);
  const written = rows.map((row) => anew(toConnection(row)));
  await tx.execute(sql`-- rewriteConnections
    UPDATE connections c SET definition = k.definition::jsonb
    FROM unnest(${texts(written.map(({ id }) => id))}, ${texts(written.map(definitionText))}) AS k(id, definition)
    WHERE c.id = k.id`);
}
