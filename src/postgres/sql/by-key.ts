import { type SQL, sql } from 'drizzle-orm';

/**
 * True for any uuid in a batch. The planner expects few rows for a range, and so it looks up each row of the other
 * table by its key. Without it, the planner may read a whole table for each batch if the table has just grown.
 */
export function anyUid(column: SQL): SQL {
  return sql`${column} BETWEEN '00000000-0000-0000-0000-000000000000' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'`;
}
