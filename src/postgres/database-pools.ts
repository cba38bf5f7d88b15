import { type Database, type openDatabase, STATEMENT_LIMIT_MS } from './database.ts';
import { currentAsker, createTurns } from '../runtime/loop/turns.ts';
import { type ConnectionBudget, createConnectionBudget } from './connection-budget.ts';
import { QueryTimeout } from './errors.ts';
import { TRANSACTION_LIMIT_MS } from './transaction.ts';

/** The connections of one instance, separated by what must not wait for what. */
interface DatabasePools {
  /** Ticks, claims, outcomes and their effects, and the take-over of lost runs: all of it is quick. */
  main: Database;
  /** Calls of the API: however many are slow, no fire waits for a connection. */
  api: Database;
  /** The same connections but one, which is left to workers, callbacks and manual fires. */
  calls: Database;
  /** Work that may take long and may wait: samples, history, backstops, and slow calls of the API one at a time. */
  background: Database;
  /** Heartbeats: slow work never makes this instance look dead. */
  heartbeat: Database;
}

interface PoolOptions {
  databaseUrl: string;
  /** For main, api and background together; at least 2. */
  connections: number;
  openDatabase: typeof openDatabase;
  /** What all of them take of the connections of the server. */
  budget?: ConnectionBudget;
}

export function openPools({ databaseUrl, connections, openDatabase, budget = createConnectionBudget() }: PoolOptions) {
  const shares = sharesOf(connections);
  const open = (size: number) => openDatabase(databaseUrl, size, { budget });
  const api = open(shares.api);
  const background = shares.background === 0 ? api : open(shares.background);
  return {
    main: open(shares.main),
    api,
    calls: shareOf(api, Math.max(1, shares.api - 1)),
    background,
    // A second try must come while the lease is valid.
    heartbeat: openDatabase(databaseUrl, 1, { mayBeTooMuch: false, budget }),
  } satisfies DatabasePools;
}

/**
 * With two connections in all, background work uses the API's. From five on, the API has two, so that one of them is
 * for workers alone.
 */
function sharesOf(connections: number): { main: number; api: number; background: number } {
  const api = Math.max(connections >= 5 ? 2 : 1, Math.floor(connections / 3));
  const background = connections >= 8 ? 2 : connections >= 3 ? 1 : 0;
  return { main: connections - api - background, api, background };
}

const ITSELF = { key: '', isModest: false };

/**
 * At most so many connections of a pool at once: work that uses the pool itself finds the others free. Callers take turns, and one
 * that only reads has half of them at most.
 */
function shareOf(database: Database, connections: number): Database {
  const turns = createTurns({ places: connections, mostWaiting: Infinity, mostOfKey: Infinity });

  const half = Math.max(1, Math.floor(connections / 2));

  async function inTurn<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    const { key, isModest } = currentAsker() ?? ITSELF;
    const leave = await turns.take(key, { limitMs, ...(isModest && { most: half }) });
    if (leave === null) throw new QueryTimeout(limitMs);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  return {
    run: (work, limitMs = STATEMENT_LIMIT_MS) => inTurn(limitMs, () => database.run(work, limitMs)),
    transaction: (work, limitMs = TRANSACTION_LIMIT_MS) => inTurn(limitMs, () => database.transaction(work, limitMs)),
    /** The pool closes them. */
    close: () => Promise.resolve(),
    /** Its connections are counted as the pool's. */
    usage: () => ({ size: 0, busy: 0, waiting: turns.waiting() }),
  };
}
