import type { PgDatabase } from 'drizzle-orm/pg-core';
import type { PostgresJsQueryResultHKT } from 'drizzle-orm/postgres-js';

/** What statements run on: a connection, or a transaction on one. */
export type Executor = PgDatabase<PostgresJsQueryResultHKT>;

/** A transaction, for work that takes several statements which succeed or fail together. */
export type Transaction = Parameters<Parameters<Executor['transaction']>[0]>[0];
