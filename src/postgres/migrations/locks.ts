import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../database.ts';
import type { Executor } from '../executor.ts';
import { rowsOf } from '../sql/rows.ts';
import { NotNow } from '../errors.ts';

/** Building an index on a full table, or waiting for a long transaction, may take hours. */
const HELD_LIMIT_MS = 7 * 86_400_000;
/** A lost lock is noticed that soon. An idle transaction is ended after 15 s. */
const PING_MS = 1_000;

/**
 * Does the work while no other instance migrates this schema; null: another one does. The lock belongs to an open transaction on a
 * connection of its own, so it also works behind a pooler. It is only tried, never waited for: a waiting statement would keep its
 * snapshot, for which CREATE INDEX CONCURRENTLY waits, while PostgreSQL sees no deadlock.
 *
 * `work` gets the id of the backend that holds the lock.
 */
export async function asMigrator<T>(database: Database, work: (holder: number) => Promise<T>): Promise<T | null> {
  return database.transaction(async (tx) => {
    const holder = await tryAdvisory(tx, sql`'firelock migrations '`);
    return holder === null ? null : whileHeld(tx, work(holder));
  }, HELD_LIMIT_MS);
}

/** False: another transaction applies a migration. An instance that lost its connection may have left one. */
async function tryStep(tx: Executor): Promise<boolean> {
  return (await tryAdvisory(tx, sql`'firelock migration step '`)) !== null;
}

async function tryAdvisory(tx: Executor, name: SQL): Promise<number | null> {
  const [row] = await rowsOf<{ mine: boolean; pid: number }>(tx)(sql`-- tryAdvisory
    SELECT pg_try_advisory_xact_lock(hashtext(${name} || current_schema())) AS mine, pg_backend_pid() AS pid`);
  return row?.mine === true ? row.pid : null;
}

/** Fails as soon as the transaction is gone, and the lock with it. */
async function whileHeld<T>(tx: Executor, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let ping: Promise<unknown> = Promise.resolve();
  const lost = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      ping = tx
        .execute(
          sql`-- whileHeld
        SELECT`,
        )
        .catch(reject);
    }, PING_MS);
  });
  try {
    return await Promise.race([work, lost]);
  } finally {
    clearInterval(timer);
    await ping;
  }
}

/** A transaction in which no statement waits long for a lock. */
export type Shortly = <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;

/**
 * While a statement waits for a lock on a table, all statements on this table that come later wait behind it, those of the version
 * before included. So it waits no longer than a fire may be late unnoticed, lets them all through, and is tried again. Only an
 * autovacuum of our tables is waited for: it gives up after `deadlock_timeout`, a second, which a VACUUM that somebody asked for does not.
 */
const LOCK_LIMIT_MS = 50;
const AUTOVACUUM_LIMIT_MS = 1_500;
const STEP_LIMIT_MS = 10 * 60_000;

export function shortlyOn(database: Database): Shortly {
  return (work) =>
    database.transaction(async (tx) => {
      if (!(await tryStep(tx))) throw new NotNow('another transaction applies a migration');
      await tx.execute(SET_LOCK_LIMIT);
      return work(tx);
    }, STEP_LIMIT_MS);
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
