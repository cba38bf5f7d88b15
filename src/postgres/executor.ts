import type { PgDatabase } from 'drizzle-orm/pg-core';
import type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

/** What statements run on: a connection, or a transaction on one. */
export type Executor = PgDatabase<PostgresJsQueryResultHKT>;

/** A transaction, where what is done takes several statements that stand or fall together. */
export type Transaction = Parameters<Parameters<Executor['transaction']>[0]>[0];
