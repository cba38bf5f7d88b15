import { sql } from 'drizzle-orm';
import type { Database } from '../database.ts';
import { NotNow } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { tryStep } from './migrator-lock.ts';

/** A transaction in which no statement waits long for a lock. */
export type Shortly = <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;

/**
 * While a statement waits for a lock on a table, all statements on this table that come later wait behind it, those of the version
 * before included. So it waits no longer than a fire may be late unnoticed, lets them all through, and is tried again. Only an
 * autovacuum of our tables is waited for: it gives up after `deadlock_timeout`, a second, which a VACUUM that somebody asked for does not.
 */
const LOCK_LIMIT_MS = 50;
const AUTOVACUUM_LIMIT_MS = 1_500;
const LIMIT_MS = 10 * 60_000;

export function shortlyOn(database: Database): Shortly {
  return (work) =>
    database.transaction(async (tx) => {
      if (!(await tryStep(tx))) throw new NotNow('another transaction applies a migration');
      await tx.execute(SET_LOCK_LIMIT);
      return work(tx);
    }, LIMIT_MS);
}

/**
 * A role may have a short limit for its statements, in which no index is built; each transaction has a limit of ours. These views show to
 * any role that there is such work, which tables it has locked, and that it is no user's; nothing more.
 */
const SET_LOCK_LIMIT = sql`SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', CASE WHEN EXISTS (
    SELECT FROM (
      SELECT pid FROM pg_stat_progress_vacuum WHERE datname = current_database()
      UNION ALL SELECT pid FROM pg_stat_progress_analyze WHERE datname = current_database()) AS work
    JOIN pg_stat_activity a ON a.pid = work.pid AND a.usesysid IS NULL
    JOIN pg_locks l ON l.pid = work.pid JOIN pg_class t ON t.oid = l.relation
    JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = current_schema())
  THEN ${String(AUTOVACUUM_LIMIT_MS)} ELSE ${String(LOCK_LIMIT_MS)} END, true)`;
