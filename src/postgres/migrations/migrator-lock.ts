import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../database.ts';
import type { Executor } from '../executor.ts';
import { rowsOf } from '../sql/rows.ts';

/** Building an index on a full table, or waiting for a long transaction, may take hours. */
const LIMIT_MS = 7 * 86_400_000;
/** A lost lock is noticed that soon. An idle transaction is ended after 15 s. */
const PING_MS = 1_000;

/**
 * Does the work while no other instance migrates this schema; null: another one does. The lock belongs to an open transaction on a
 * connection of its own, so it also works behind a pooler. It is only tried, never waited for: a waiting statement would keep its
 * snapshot, for which CREATE INDEX CONCURRENTLY waits, while PostgreSQL sees no deadlock.
 *
 * `work` gets the id of the backend that holds the lock.
 */
export async function asMigrator<T>(
  database: Database,
  work: (holder: number) => Promise<T>,
): Promise<T | null> {
  return database.transaction(async (tx) => {
    const holder = await tryLock(tx);
    return holder === null ? null : whileHeld(tx, work(holder));
  }, LIMIT_MS);
}

/** False: another transaction applies a migration. An instance that lost its connection may have left one. */
export async function tryStep(tx: Executor): Promise<boolean> {
  return (await tryAdvisory(tx, sql`'firelock migration step '`)) !== null;
}

async function tryLock(tx: Executor): Promise<number | null> {
  return tryAdvisory(tx, sql`'firelock migrations '`);
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
