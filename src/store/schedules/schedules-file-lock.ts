import { sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';

/** Instances that start together apply their file one after the other: until the transaction ends, the others wait. */
export async function lockSchedulesFile(tx: Executor): Promise<void> {
  await tx.execute(sql`-- lockSchedulesFile
    SELECT pg_advisory_xact_lock(hashtext('firelock schedules file ' || current_schema()))`);
}

/** Fails if the transaction, and so the lock, is gone; and keeps the server from ending an idle transaction. */
export async function keepSchedulesFileLock(tx: Executor): Promise<void> {
  await tx.execute(sql`-- keepSchedulesFileLock
    SELECT 1`);
}
