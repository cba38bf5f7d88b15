/**
 * Guarantees: workers that asked for work lately are listed, at the cost of a statement now and then; a claim never waits for that.
 * Transaction: one statement for all workers that asked meanwhile.
 * If the process dies here: a worker is listed again when it asks again.
 */
import type { Clock } from '../runtime/clock.ts';
import type { Database } from '../postgres/database.ts';
import { type SeenWorker, forgetOldWorkers, seeWorkers } from '../store/queues/queue-workers.ts';

interface WorkerSightings {
  saw(worker: SeenWorker): void;
  /** Resolves when all pending writes are done. */
  settled(): Promise<void>;
}

const FRESH_MS = 5_000;
const FORGET_EVERY_MS = 60 * 60_000;
/** The most workers in one statement. */
const MOST = 1_000;

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createWorkerSightings(deps: { database: Database; clock: Clock }): WorkerSightings {
  const { database, clock } = deps;
  /** When each of them was last seen, monotonic; the oldest first. */
  const lately = new Map<string, number>();
  const unwritten: SeenWorker[] = [];
  let writing: Promise<void> | undefined;
  let forgotAt = -Infinity;

  async function write(): Promise<void> {
    while (unwritten.length > 0) {
      const batch = unwritten.splice(0, MOST);
      dropStale();
      await database
        .run(async (db) => {
          await seeWorkers(db, batch);
          if (clock.monotonic() - forgotAt < FORGET_EVERY_MS) return;
          await forgetOldWorkers(db);
          forgotAt = clock.monotonic();
        })
        // Only a number on a page: it is written again when the worker asks again.
        .catch(() => {
          for (const worker of batch) lately.delete(keyOf(worker));
        });
    }
  }

  function dropStale(): void {
    for (const [key, at] of lately) {
      if (clock.monotonic() - at < FRESH_MS) return;
      lately.delete(key);
    }
  }

  return {
    saw: (worker) => {
      const key = keyOf(worker);
      const at = lately.get(key);
      if (at !== undefined && clock.monotonic() - at < FRESH_MS) return;
      lately.delete(key);
      lately.set(key, clock.monotonic());
      unwritten.push(worker);
      writing ??= write().finally(() => (writing = undefined));
    },
    settled: async () => {
      await writing;
    },
  };
}

function keyOf({ queue, workerId }: SeenWorker): string {
  return `${queue} ${workerId}`;
}
