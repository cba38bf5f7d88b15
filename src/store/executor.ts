import { sql } from 'drizzle-orm';
import type { PgDatabase } from 'drizzle-orm/pg-core';
import type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

/** What statements run on: a connection, or a transaction on one. */
export type Executor = PgDatabase<PostgresJsQueryResultHKT>;

/** A transaction, where what is done takes several statements that stand or fall together. */
export type Transaction = Parameters<Parameters<Executor['transaction']>[0]>[0];

/**
 * Sends SQL without parameters, several statements if need be, before whatever is asked after this call; resolves with its answer. The
 * query builder's promise alone would send nothing before somebody waits for it, and so after a statement that is waited for at once.
 */
export function sendNow(tx: Transaction, text: string): Promise<void> {
  return tx.execute(sql.raw(text)).then(() => undefined);
}
