/**
 * Guarantees: the first worker that asks for a queue after a while finds its runs with a limit at once. These get places only
 *   while workers ask for their queue (store/limits/admit-runs.ts).
 * Transaction: one, as admission has.
 * If the process dies here: admission gives the places when the asking is written down.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../runtime/clock.ts';
import type { Database } from '../postgres/database.ts';
import { admitUnderLock, limitsToAdmit } from '../store/limits/admit-runs.ts';

interface AttendanceDeps {
  database: Database;
  clock: Clock;
  /** Resolves when the database knows which workers asked. */
  written: () => Promise<void>;
}

interface Attendance {
  /** Call it once writing the worker's request has begun. It never fails: the claim itself reports errors. */
  attend(queue: string): Promise<void>;
}

/** Shorter than the time after which a queue counts as abandoned by its workers. */
const FRESH_MS = 30_000;
const MAX_QUEUES = 10_000;
const MAX_LIMITS = 100;

export function createAttendance({ database, clock, written }: AttendanceDeps): Attendance {
  const lately = new LRUCache<string, { at: number; done: Promise<void> }>({ max: MAX_QUEUES });

  async function admit(): Promise<void> {
    await written();
    const { ids } = await database.run((db) => limitsToAdmit(db, MAX_LIMITS));
    if (ids.length > 0) await database.transaction((tx) => admitUnderLock(tx, ids));
  }

  return {
    attend: (queue) => {
      const known = lately.get(queue);
      if (known && clock.monotonic() - known.at < FRESH_MS) return known.done;
      const done = admit().catch(() => undefined);
      lately.set(queue, { at: clock.monotonic(), done });
      return done;
    },
  };
}
