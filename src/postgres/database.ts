import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type ConnectionBudget, createConnectionBudget } from './connection-budget.ts';
import { isReadOnly, isRepeatable } from './errors.ts';
import type { Executor, Transaction } from './executor.ts';
import { type PoolUsage, ConnectionPool } from './pool.ts';
import { TRANSACTION_LIMIT_MS } from './transaction.ts';
import { databaseTrouble } from '../core/database-trouble.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Clock } from '../runtime/clock.ts';

/**
 * The only way to the database. Every piece of work has a time limit on this side, and so has the wait for a
 * connection. When it passes, the connection is dropped with everything that runs on it, and the work fails with
 * QueryTimeout; its effect is then unknown. It fails with OutOfTime if the database answers something else meanwhile: so an outage is no
 * reason to take the work for too much. Deadlocks and serialization failures repeat the whole work; so does, once
 * and in a new session, a session that may not write.
 */
export interface Database {
  /** One statement, or several that need no common transaction. */
  run<T>(work: (db: Executor) => Promise<T>, limitMs?: number): Promise<T>;
  /** READ COMMITTED; committed when the work resolves. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, limitMs?: number): Promise<T>;
  close(): Promise<void>;
  /** Opens the first of its connections, if that is not open. Absent, as the following, if the connections are not its own. */
  open?(): Promise<void>;
  usage?(): PoolUsage;
}

export const STATEMENT_LIMIT_MS = 5_000;
const REPETITIONS = 5;

interface DatabaseOptions {
  /**
   * False: none of its work can be too much. Work that runs out of time fails at once with QueryTimeout, so that it can be tried again
   * without waiting for whether the database answers something else.
   */
  mayBeTooMuch?: boolean;
  /** Shared by the pools of a process; absent: nothing limits it but its size. */
  budget?: ConnectionBudget;
}

/** Nothing here depends on session state, so it works behind a pooler in transaction mode. */
export function openDatabase(
  url: string,
  size: number,
  { mayBeTooMuch = true, budget = createConnectionBudget() }: DatabaseOptions = {},
): Database {
  const pool = new ConnectionPool({ url, size, mayBeTooMuch, budget });

  async function within<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    for (let repetition = 1; ; repetition += 1) {
      try {
        return await pool.use(work, limitMs);
      } catch (error) {
        if (repetition > (isReadOnly(error) ? 1 : isRepeatable(error) ? REPETITIONS : 0)) throw error;
        await delay(Math.random() * 20 * repetition);
      }
    }
  }

  return {
    run: (work, limitMs = STATEMENT_LIMIT_MS) => within(work, limitMs),
    transaction: (work, limitMs = TRANSACTION_LIMIT_MS) => within((db) => db.transaction(work), limitMs),
    close: () => pool.close(),
    open: () => pool.open(),
    usage: () => pool.usage(),
  };
}

/** The same database, for work that only reads: PostgreSQL refuses every write, also where it would accept it from others. */
export function readingOnly(database: Database): Database {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>, limitMs?: number) =>
    database.transaction(async (tx) => {
      await tx.execute(sql`-- readingOnly
        SET TRANSACTION READ ONLY`);
      return work(tx);
    }, limitMs);
  return {
    ...database,
    run: (work, limitMs = STATEMENT_LIMIT_MS) => transaction(work, limitMs),
    transaction,
  };
}

/** The same database, which tells of work that fails because of the database, whoever asked for it. */
export function tellingTroubles(database: Database, events: Pick<EventBus, 'emit'>): Database {
  async function telling<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (databaseTrouble(error) !== null) events.emit({ type: 'databaseFailed', error });
      throw error;
    }
  }
  return {
    ...database,
    run: (work, limitMs) => telling(database.run(work, limitMs)),
    transaction: (work, limitMs) => telling(database.transaction(work, limitMs)),
  };
}

/** What every loop over the database needs. */
export interface LoopDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
}
