import { sql } from 'drizzle-orm';
import type { TestContext } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';

/** Leaves a test out, visibly, where the server cannot be made to count at once what a session has read (PostgreSQL 14). */
export async function needsCounting(context: TestContext, database: Database): Promise<void> {
  const [row] = await database.run((db) =>
    rowsOf<{ can: boolean }>(db)(sql`SELECT to_regproc('pg_stat_force_next_flush') IS NOT NULL AS can`),
  );
  if (row?.can !== true) context.skip('this PostgreSQL counts what was read only when it likes to');
}

/** What a session has read so far is in the server's statistics afterwards. */
export async function countNow(database: Database): Promise<void> {
  await database.run((db) => rowsOf(db)(sql`SELECT pg_stat_force_next_flush()`));
}
