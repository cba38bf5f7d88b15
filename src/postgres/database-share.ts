import { createTurns } from '../runtime/loop/turns.ts';
import { type Database, STATEMENT_LIMIT_MS } from './database.ts';
import { QueryTimeout } from './errors.ts';
import { TRANSACTION_LIMIT_MS } from './transaction.ts';

/** At most so many connections of a pool at once: work that uses the pool itself finds the others free. */
export function shareOf(database: Database, connections: number): Database {
  const turns = createTurns({ places: connections, mostWaiting: Infinity, mostOfKey: Infinity });

  async function inTurn<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    const leave = await turns.take('', { limitMs });
    if (leave === null) throw new QueryTimeout(limitMs);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  return {
    run: (work, limitMs = STATEMENT_LIMIT_MS) => inTurn(limitMs, () => database.run(work, limitMs)),
    transaction: (work, limitMs = TRANSACTION_LIMIT_MS) =>
      inTurn(limitMs, () => database.transaction(work, limitMs)),
    /** The pool closes them. */
    close: () => Promise.resolve(),
    /** Its connections are counted as the pool's. */
    usage: () => ({ size: 0, busy: 0, waiting: turns.waiting() }),
  };
}
