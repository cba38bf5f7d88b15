import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';

/** The rows that a `COPY … TO STDOUT` answers: no more of them are in memory than the reader is behind. */
export function copyOut(sql: postgres.Sql, statement: string): Promise<Readable> {
  return sql.unsafe(statement).readable();
}

/**
 * Sends rows to a `COPY … FROM STDIN`. To the driver it has succeeded with its first answer, and it keeps what the server says
 * afterwards for itself: so that is heard here.
 */
export async function copyIn(
  sql: postgres.Sql,
  statement: string,
  rows: AsyncIterable<Buffer>,
): Promise<void> {
  const query = sql.unsafe(statement);
  const failed = new Promise<never>((_, reject) => void Object.assign(query, { reject }));
  const sent = Promise.race([query.writable(), failed]).then((into: Writable) => pipeline(rows, into));
  // What the server says comes first; the stream is then broken off too.
  sent.catch(() => undefined);
  await Promise.race([failed, sent]);
}
