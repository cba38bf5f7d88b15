import { type SQL, sql } from 'drizzle-orm';
import type { Transaction } from '../executor.ts';

/**
 * A column beside the time of a statement that writes many rows: it fails (isLockedByOthers) where another transaction
 * has one of them locked for longer. A frozen instance may do so for seconds, and all the others would wait as long: on the
 * server even after this side has given up on the statement. What it did not write then goes its way past that row.
 * The limit takes no round trip, holds behind a pooler, and ends with the transaction: with the statement, where that
 * is one by itself. The rows that are locked must come from a join with this one, which so is there before them.
 */
function lockLimit(ms: number): SQL {
  return sql`set_config('lock_timeout', ${sql.raw(`'${ms}'`)}, true) AS lock_limit`;
}

/** A healthy instance never has a row locked for this long. */
export const LOCK_LIMIT = lockLimit(200);

/** The same for the rest of the transaction. */
export async function limitLockWaits(tx: Transaction): Promise<void> {
  await tx.execute(sql`-- limitLockWaits
    SELECT ${LOCK_LIMIT}`);
}
