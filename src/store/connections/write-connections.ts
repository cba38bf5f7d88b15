import { sql } from 'drizzle-orm';
import type { Connection } from '../../core/connections/connection.ts';
import { isoInstant } from '../../core/instant.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** @throws TryAgain if another caller has just created one of that id */
export async function createConnection(tx: Transaction, connection: Connection): Promise<void> {
  const { id, uid, description, url, version, edition, updatedAt, placedAt } = connection;
  const rows = await rowsOf(tx)(sql`-- createConnection
    INSERT INTO connections (id, uid, description, url, definition, version, edition, updated_at, placed_at)
    VALUES (${id}, ${uid}, ${description}, ${url}, ${definitionText(connection)}::jsonb, ${version}, ${edition},
      ${isoInstant(updatedAt)}::timestamptz, ${isoInstant(placedAt)}::timestamptz)
    ON CONFLICT DO NOTHING RETURNING id`);
  if (rows.length === 0) throw new TryAgain('a connection of that id was created meanwhile');
}

/** The caller has its row locked. */
export async function changeLockedConnection(tx: Transaction, connection: Connection): Promise<void> {
  const { id, description, url, version, edition, updatedAt, placedAt } = connection;
  await tx.execute(sql`-- changeLockedConnection
    UPDATE connections SET description = ${description}, url = ${url}, definition = ${definitionText(connection)}::jsonb,
      version = ${version}, edition = ${edition}, updated_at = ${isoInstant(updatedAt)}::timestamptz, placed_at = ${isoInstant(placedAt)}::timestamptz WHERE id = ${id}`);
}

/** As the column `definition` has it. */
export function definitionText({ urlSeal, headers, auth, tls }: Connection): string {
  return JSON.stringify({ urlSeal, headers, auth, tls });
}
