import { type Connection, connect } from './connection.ts';
import { QueryTimeout, isReadOnly, isRepeatable, isSessionLost, markAsOfDatabaseWork } from './errors.ts';
import { type Executor, type Transaction, sendNow } from './executor.ts';
import type { Sessions } from './sessions.ts';

/**
 * The only way to the database. Every piece of work has a time limit on this side, and so has the wait for a connection:
 * when it runs out the connection is dropped with whatever runs on it, and the work fails with QueryTimeout; what it
 * did is then unknown. Deadlocks and serialization failures repeat the whole work; so does, once and in a new session, one
 * that may not write.
 */
export interface Database {
  /** One statement, or several that need not be one transaction. */
  run<T>(work: (db: Executor) => Promise<T>, limitMs?: number): Promise<T>;
  /** READ COMMITTED; committed when the work resolves. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, limitMs?: number): Promise<T>;
  close(): Promise<void>;
}

export const STATEMENT_LIMIT_MS = 5_000;
const TRANSACTION_LIMIT_MS = 15_000;
const REPETITIONS = 5;

/** Nothing here depends on session state, so it works behind a pooler in transaction mode. */
export function openDatabase(url: string, size: number): Database {
  const pool = createPool(url, size);

  async function within<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    for (let repetition = 1; ; repetition += 1) {
      try {
        return await pool.use(work, limitMs);
      } catch (error) {
        if (repetition > (isReadOnly(error) ? 1 : isRepeatable(error) ? REPETITIONS : 0)) throw error;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * repetition));
      }
    }
  }

  return {
    run: (work, limitMs = STATEMENT_LIMIT_MS) => within(work, limitMs),
    transaction: (work, limitMs = TRANSACTION_LIMIT_MS) =>
      within((db) => db.transaction((tx) => guarded(tx, work)), limitMs),
    close: () => pool.close(),
  };
}

/**
 * A process that is frozen, or cut off, in the middle of a transaction must not hold its row locks for ever.
 *
 * And in PostgreSQL 18 before its minor release of November 2026, a statement that looks again at a row which somebody has changed
 * meanwhile (READ COMMITTED) spoils what it knows of partitions that it picks while it runs: it misses rows afterwards, or, where a
 * CTE locks and another one writes, crashes the server with all its sessions (PostgreSQL commit 1b5dd3a, "run-time pruning" in
 * EvalPlanQualStart). So there, partitions are not picked within transactions; statements outside of them are written so that it does
 * no harm.
 *
 * Both are sent before the work's first statement and together with it, so that they cost no round trip.
 */
const TRANSACTION_SETTINGS = `SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_LIMIT_MS};
  SELECT set_config('enable_partition_pruning', 'off', true)
  WHERE current_setting('server_version_num')::int BETWEEN 180000 AND 180005`;

async function guarded<T>(tx: Transaction, work: (tx: Transaction) => Promise<T>): Promise<T> {
  try {
    const [, result] = await Promise.all([sendNow(tx, TRANSACTION_SETTINGS), work(tx)]);
    return result;
  } catch (error) {
    if (!isSessionLost(error)) throw error;
    // The driver would write a ROLLBACK to the socket that is gone, and end the process with it. It rejects by itself once the
    // socket has closed; and whatever it does, the time limit holds.
    return new Promise(() => undefined);
  }
}

interface Pool {
  use<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T>;
  close(): Promise<void>;
}

/**
 * A pool of our own, since the driver's cannot end one query that hangs: here a connection is a client by itself, which
 * is thrown away, query and all, when its time is up.
 */
function createPool(url: string, size: number): Pool {
  const sessions: Sessions = { areOwn: undefined };
  const idle: Connection[] = Array.from({ length: size }, () => connect(url, sessions));
  const all = new Set(idle);
  const waiting: ((connection: Connection) => void)[] = [];

  function giveBack(connection: Connection): void {
    const next = waiting.shift();
    if (next) next(connection);
    else idle.push(connection);
  }

  function replace(connection: Connection): void {
    all.delete(connection);
    const fresh = connect(url, sessions);
    all.add(fresh);
    giveBack(fresh);
    void connection.destroy();
  }

  async function acquire(limitMs: number): Promise<Connection> {
    const free = idle.pop();
    if (free) return free;
    return new Promise((resolve, reject) => {
      const take = (connection: Connection): void => {
        clearTimeout(timer);
        resolve(connection);
      };
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(take), 1);
        reject(new QueryTimeout(limitMs));
      }, limitMs);
      waiting.push(take);
    });
  }

  return {
    use: async (work, limitMs) => {
      const connection = await acquire(limitMs);
      const limit = deadline(limitMs);
      let usable = true;
      try {
        return await Promise.race([connection.ready().then(() => work(connection.executor)), limit.expired]);
      } catch (error) {
        markAsOfDatabaseWork(error);
        // The others were made at about the same time, and would only find out one after the other.
        if (isReadOnly(error)) for (const other of idle.splice(0)) replace(other);
        // The driver would open a new session, and fail the next statement there with the error of the one that is lost.
        usable = !isReadOnly(error) && !isSessionLost(error);
        throw error;
      } finally {
        connection.look();
        if (limit.clear() && usable) giveBack(connection);
        else replace(connection);
      }
    },
    close: async () => {
      await Promise.all([...all].map((connection) => connection.close()));
    },
  };
}

interface Deadline {
  /** Rejects when the time is up. */
  expired: Promise<never>;
  /** False: it is too late. */
  clear(): boolean;
}

function deadline(limitMs: number): Deadline {
  let inTime = true;
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      inTime = false;
      reject(new QueryTimeout(limitMs));
    }, limitMs);
  });
  return {
    expired,
    clear: () => {
      clearTimeout(timer);
      return inTime;
    },
  };
}
