import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { Executor } from '../executor.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';

/** The clock that decides: this moment, not the transaction's start. */
export async function databaseNow(db: Executor): Promise<Instant> {
  const [row] = await rowsOf<{ now: InstantText }>(db)(sql`-- databaseNow
    SELECT clock_timestamp() AS now`);
  if (!row) throw new Error('the database gave no time');
  return toInstant(row.now);
}
