/**
 * Guarantees: workers that asked for work lately are listed, at the cost of a statement now and then; a claim never waits for
 *   that. One caller with names of its own making neither fills the table nor hides the workers of others.
 * Transaction: one statement for all workers that asked meanwhile.
 * If the process dies here: a worker is listed again when it asks again.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../runtime/clock.ts';
import type { Database } from '../postgres/database.ts';
import { type SeenWorker, forgetOldWorkers, seeWorkers } from '../store/queues/queue-workers.ts';
import { admitUnderLock, limitsToAdmit } from '../store/limits/limits.ts';

interface WorkerSightings {
  /** False: its caller has named too many lately, so that this worker is not listed. `caller`: '' where it has no name. */
  saw(worker: SeenWorker, caller: string): boolean;
  /** Resolves when all pending writes are done. */
  settled(): Promise<void>;
}

const FRESH_MS = 5_000;
const FORGET_EVERY_MS = 60_000;
/** The most workers in one statement. */
const MOST = 1_000;
const MAX_CALLERS = 1_000;
/** How many queues, and how many workers, one caller may name within LATELY_MS. */
const MOST_QUEUES = 256;
const MOST_WORKERS = 2_000;
const LATELY_MS = 5 * 60_000;

interface Named {
  queues: Map<string, number>;
  workers: Map<string, number>;
}

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createWorkerSightings(deps: { database: Database; clock: Clock }): WorkerSightings {
  const { database, clock } = deps;
  /** When each of them was last seen, monotonic; the oldest first. */
  const lately = new Map<string, number>();
  const unwritten: SeenWorker[] = [];
  const namedBy = new LRUCache<string, Named>({ max: MAX_CALLERS });
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
          if ((await forgetOldWorkers(db, MOST)) < MOST) forgotAt = clock.monotonic();
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
    saw: (worker, caller) => {
      const key = keyOf(worker);
      const now = clock.monotonic();
      if (now - (lately.get(key) ?? -Infinity) < FRESH_MS) return true;
      const named: Named = namedBy.get(caller) ?? { queues: new Map(), workers: new Map() };
      namedBy.set(caller, named);
      const isListed =
        mayName(named.queues, worker.queue, { most: MOST_QUEUES, now }) &&
        mayName(named.workers, key, { most: MOST_WORKERS, now });
      if (!isListed) return false;
      lately.delete(key);
      lately.set(key, now);
      unwritten.push(worker);
      writing ??= write().finally(() => (writing = undefined));
      return true;
    },
    settled: async () => {
      await writing;
    },
  };
}

function keyOf({ queue, workerId }: SeenWorker): string {
  return `${queue} ${workerId}`;
}

/** `names`: when each was named last, the oldest first. One that was not named lately makes room for another. */
function mayName(names: Map<string, number>, name: string, { most, now }: { most: number; now: number }): boolean {
  if (!names.delete(name)) {
    const [oldest] = names;
    if (oldest !== undefined && now - oldest[1] >= LATELY_MS) names.delete(oldest[0]);
    if (names.size >= most) return false;
  }
  names.set(name, now);
  return true;
}

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
const ATTENDED_MS = 30_000;
const MAX_QUEUES = 10_000;
const MAX_LIMITS = 100;

/**
 * The first worker that asks for a queue after a while finds its runs with a limit at once: these get places only while workers ask for
 * their queue (store/limits/limits.ts). If the process dies before, admission gives the places when the asking is written down.
 */
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
      if (known && clock.monotonic() - known.at < ATTENDED_MS) return known.done;
      const done = admit().catch(() => undefined);
      lately.set(queue, { at: clock.monotonic(), done });
      return done;
    },
  };
}
