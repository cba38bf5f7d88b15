import { setTimeout as delay } from 'node:timers/promises';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { ConnectionLost } from '../../../src/postgres/errors.ts';

/** Pools of one database whose sessions outlive a test: opening a session costs as much as a hundred statements in it. */
export interface KeptPools {
  /** As of `src/postgres`. Closed, it takes no more work, and its sessions are left to the next who opens one of the same size. */
  readonly open: typeof openDatabase;
  /** Closes those that were left open. */
  readonly giveBack: () => Promise<void>;
  /** Ends all sessions. */
  readonly close: () => Promise<void>;
}

/** The name of their sessions at the server. */
export const KEPT = 'firelock-tests-kept';

export function createKeptPools(databaseUrl: string): KeptPools {
  const idle = new Map<string, Database[]>();
  const lent = new Set<Database>();
  const url = new URL(databaseUrl);
  url.searchParams.set('application_name', KEPT);
  const giveBack = async () => {
    await Promise.all([...lent].map((pool) => pool.close()));
  };
  return {
    open: (_url, size, options) => {
      const key = `${size} ${options?.mayBeTooMuch}`;
      const pools = idle.get(key) ?? [];
      idle.set(key, pools);
      // Each has a budget of its own: what one test's instance may take says nothing of the next one's.
      const { mayBeTooMuch } = options ?? {};
      const pool = pools.pop() ?? openDatabase(url.href, size, mayBeTooMuch === undefined ? {} : { mayBeTooMuch });
      const one = lend(pool, async (isIdle) => {
        lent.delete(one);
        if (isIdle) pools.push(pool);
        else await pool.close();
      });
      lent.add(one);
      return one;
    },
    giveBack,
    close: async () => {
      await giveBack();
      await Promise.all([...idle.values()].flat().map((pool) => pool.close()));
    },
  };
}

/** As long as a pool waits for its work when it is closed. */
const CLOSING_MS = 5_000;

function lend(pool: Database, end: (isIdle: boolean) => Promise<void>): Database {
  const underWay = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;
  async function noted<T>(work: () => Promise<T>): Promise<T> {
    if (closing !== undefined) throw new ConnectionLost('CONNECTION_ENDED', 'the connection has been closed');
    const working = work();
    underWay.add(working);
    try {
      return await working;
    } finally {
      underWay.delete(working);
    }
  }
  return {
    run: (work, limitMs) => noted(() => pool.run(work, limitMs)),
    transaction: (work, limitMs) => noted(() => pool.transaction(work, limitMs)),
    usage: () => pool.usage?.() ?? { size: 0, busy: 0, waiting: 0 },
    close: () =>
      (closing ??= (async () => {
        await Promise.race([Promise.allSettled(underWay), delay(CLOSING_MS, undefined, { ref: false })]);
        await end(underWay.size === 0 && pool.usage?.().busy === 0);
      })()),
  };
}
