import { sql } from 'drizzle-orm';
import type { Database } from '../database.ts';
import { NotNow } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { tryStep } from './migrator-lock.ts';

/** A transaction in which no statement waits long for a lock. */
export type Shortly = <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;

/**
 * While a statement waits for a lock on a table, all statements on this table that come later wait behind it, those of the version
 * before included. So it waits for less time than they have, and then lets them all through before it is tried again. An autovacuum
 * that is in the way gives up after `deadlock_timeout`, a second: it must not wait for less than that.
 */
const LOCK_LIMIT_MS = 1_500;
const LIMIT_MS = 10 * 60_000;

export function shortlyOn(database: Database): Shortly {
  return (work) =>
    database.transaction(async (tx) => {
      if (!(await tryStep(tx))) throw new NotNow('another transaction applies a migration');
      await tx.execute(sql.raw(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}`));
      return work(tx);
    }, LIMIT_MS);
}
