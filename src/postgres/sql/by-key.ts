import { type SQL, sql } from 'drizzle-orm';

/**
 * True of any uuid in a batch. The planner expects few rows of a range, and so it goes to each row of the other table by its key. Left
 * to what it knows of a table that grew just now, it reads all of that table for each batch.
 */
export function anyUid(column: SQL): SQL {
  return sql`${column} BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'`;
}
