import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type LastingConnection, connect } from './connection/lasting-connection.ts';
import {
  OutOfTime,
  QueryTimeout,
  isReadOnly,
  isRepeatable,
  isSessionLost,
  markAsOfDatabaseWork,
} from './errors.ts';
import type { Executor, Transaction } from './executor.ts';
import { TRANSACTION_LIMIT_MS } from './transaction.ts';

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
  /** Absent if the connections are not its own. */
  usage?(): PoolUsage;
}

/** At this moment. */
export interface PoolUsage {
  size: number;
  /** Open connections. */
  busy: number;
  /** Pieces of work that wait for a connection. */
  waiting: number;
}

export const STATEMENT_LIMIT_MS = 5_000;
const REPETITIONS = 5;

interface DatabaseOptions {
  /**
   * False: none of its work can be too much. Work that runs out of time fails at once with QueryTimeout, so that it can be tried again
   * without waiting for whether the database answers something else.
   */
  mayBeTooMuch?: boolean;
}

/** Nothing here depends on session state, so it works behind a pooler in transaction mode. */
export function openDatabase(
  url: string,
  size: number,
  { mayBeTooMuch = true }: DatabaseOptions = {},
): Database {
  const pool = createPool(url, size);

  async function within<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    for (let repetition = 1; ; repetition += 1) {
      try {
        return await pool.use(work, limitMs);
      } catch (error) {
        if (mayBeTooMuch) await throwIfTooMuch(pool, error, limitMs);
        if (repetition > (isReadOnly(error) ? 1 : isRepeatable(error) ? REPETITIONS : 0)) throw error;
        await delay(Math.random() * 20 * repetition);
      }
    }
  }

  return {
    run: (work, limitMs = STATEMENT_LIMIT_MS) => within(work, limitMs),
    transaction: (work, limitMs = TRANSACTION_LIMIT_MS) => within((db) => db.transaction(work), limitMs),
    close: () => pool.close(),
    usage: () => pool.usage(),
  };
}

const ANSWER_LIMIT_MS = 2_000;
const COMMITTED_NOTHING = sql`SELECT pg_logical_emit_message(true, 'firelock', '')`;
/** Time limits that passed while the work was under way, and not while it waited for a connection. */
const begunInTime = new WeakSet<object>();

/** Work was too much if the database answers something else. If it does not, an idle connection hangs too, and would fail the next work. */
async function throwIfTooMuch(pool: Pool, error: unknown, limitMs: number): Promise<void> {
  if (!begunInTime.has(error as object)) return;
  if (await answers(pool)) throw new OutOfTime(limitMs);
  pool.replaceIdle();
}

async function answers(pool: Pool): Promise<boolean> {
  // It commits something: where a synchronous standby is gone, reads are answered, and commits are not.
  const answered = pool.use((db) => db.execute(COMMITTED_NOTHING), ANSWER_LIMIT_MS);
  return answered.then(
    () => true,
    () => false,
  );
}

interface Pool {
  usage(): PoolUsage;
  use<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T>;
  /**
   * Those that are idle were opened at about the same time as one that has failed: they would only find out one after the other. One that
   * opens just now goes on: where the way to the database is slow, another would only begin later.
   */
  replaceIdle(): void;
  close(): Promise<void>;
}

/**
 * Our own pool, since the driver's cannot end one query that hangs: here each connection is a client by itself, which
 * is thrown away, with its query, when its time is up.
 */
// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
function createPool(url: string, size: number): Pool {
  const idle: LastingConnection[] = Array.from({ length: size }, () => connect(url));
  const all = new Set(idle);
  const underWay = new Set<Promise<unknown>>();
  const waiting: ((connection: LastingConnection) => void)[] = [];

  function giveBack(connection: LastingConnection): void {
    const next = waiting.shift();
    if (next) next(connection);
    else idle.push(connection);
  }

  function replace(connection: LastingConnection): void {
    all.delete(connection);
    const fresh = connect(url);
    all.add(fresh);
    giveBack(fresh);
  }

  function replaceIdle(): void {
    for (const other of idle.splice(0)) {
      if (other.isOpening()) {
        giveBack(other);
      } else {
        void other.close();
        replace(other);
      }
    }
  }

  async function acquire(limitMs: number): Promise<LastingConnection> {
    const free = idle.pop();
    if (free) return free;
    return new Promise((resolve, reject) => {
      const take = (connection: LastingConnection): void => {
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

  async function use<T>(work: (db: Executor) => Promise<T>, limitMs: number): Promise<T> {
    const connection = await acquire(limitMs);
    const limit = deadline(limitMs);
    let usable = true;
    const progress = { isBegun: false };
    try {
      const working = connection.session().then(({ executor }) => {
        // By now, another piece of work may be using it.
        if (limit.isOver()) throw new QueryTimeout(limitMs);
        progress.isBegun = true;
        return work(executor);
      });
      return await Promise.race([working, limit.expired]);
    } catch (error) {
      markAsOfDatabaseWork(error);
      if (progress.isBegun && error instanceof QueryTimeout) begunInTime.add(error);
      usable = !isReadOnly(error) && !isSessionLost(error);
      if (isReadOnly(error)) {
        connection.mayNotWrite();
        replaceIdle();
      }
      throw error;
    } finally {
      limit.clear();
      if ((usable && !limit.isOver()) || connection.isOpening()) {
        giveBack(connection);
      } else {
        void connection.destroy();
        replace(connection);
      }
    }
  }

  return {
    replaceIdle,
    usage: () => ({ size, busy: size - idle.length, waiting: waiting.length }),
    use: async (work, limitMs) => {
      const using = use(work, limitMs);
      underWay.add(using);
      try {
        return await using;
      } finally {
        underWay.delete(using);
      }
    },
    close: async () => {
      await Promise.race([Promise.allSettled(underWay), delay(CLOSING_MS, undefined, { ref: false })]);
      await Promise.all([...all].map((connection) => connection.close()));
    },
  };
}

const CLOSING_MS = 5_000;

interface Deadline {
  /** Rejects when the time is up. */
  expired: Promise<never>;
  isOver(): boolean;
  clear(): void;
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
    isOver: () => !inTime,
    clear: () => clearTimeout(timer),
  };
}
