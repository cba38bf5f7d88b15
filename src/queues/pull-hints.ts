/**
 * Guarantees: other instances get a hint at work to pull soon, and not more often than they can use it.
 * Transaction: a statement of its own, after the commit of the work.
 * If the process dies here: they find it when they look by themselves.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../postgres/database.ts';
import { hintAtWork } from '../store/queues/queue-workers.ts';

interface PullHints {
  send(): void;
  stop(): Promise<void>;
}

/** The least time between two hints. */
const MIN_MS = 100;

export function createPullHints(database: Database): PullHints {
  const stopping = new AbortController();
  let again = false;
  let sending: Promise<void> | undefined;

  async function send(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false;
      // A failure does no harm: without a database, there is nothing to claim either.
      await database.run(hintAtWork).catch(() => undefined);
      await pause(MIN_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  function start(): void {
    again = true;
    sending ??= send().finally(() => {
      sending = undefined;
      if (again && !stopping.signal.aborted) start();
    });
  }

  return {
    send: start,
    stop: async () => {
      stopping.abort();
      await sending;
    },
  };
}
