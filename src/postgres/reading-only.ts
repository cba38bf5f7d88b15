import { sql } from 'drizzle-orm';
import { type Database, STATEMENT_LIMIT_MS } from './database.ts';
import type { Transaction } from './executor.ts';

/** The same database, for work that only reads: PostgreSQL refuses every write, also where it would accept it from others. */
export function readingOnly(database: Database): Database {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>, limitMs?: number) =>
    database.transaction(async (tx) => {
      await tx.execute(sql`-- readingOnly
        SET TRANSACTION READ ONLY`);
      return work(tx);
    }, limitMs);
  return {
    ...database,
    run: (work, limitMs = STATEMENT_LIMIT_MS) => transaction(work, limitMs),
    transaction,
  };
}
