/**
 * Guarantees: who follows the log of a run waits here without holding a connection, and hears of what is appended, and of the end of
 *   the attempt, at whichever instance that happens.
 * Transaction: none; one statement now and then looks for all who wait.
 * If the process dies here: those who waited ask again.
 */
import { type Turning, createLoop, turningOf } from '../runtime/loop/loop.ts';
import { NotNow } from '../postgres/errors.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { type LogPosition, type ReadLog, positionsWithNews } from '../store/runs/logs/read-log.ts';

interface Patience {
  ms: number;
  /** Aborted: there is nobody to answer to, or it is to be answered with what there is. */
  signals: readonly AbortSignal[];
}

export interface LogFollowers extends Turning {
  /** Until there may be more at this position, or the attempt is over, or it is enough. @throws NotNow if too many wait already */
  wait(position: LogPosition, patience: Patience): Promise<void>;
  /** Those who ask for the same at the same time share what is read. */
  read(what: string, read: () => Promise<ReadLog | null>): Promise<ReadLog | null>;
  waiting(): number;
  isStopping(): boolean;
}

interface Waiter {
  position: LogPosition;
  /** Called once. */
  end: () => void;
}

const MOST_WAITING = 1_000;
/** How often logs that somebody follows are looked at: what this instance appends is told at once. */
const POLL_MS = 500;
const MIN_POLL_MS = 10;
const IDLE_MS = 60_000;

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createLogFollowers({ database, clock, events }: LoopDeps, most = MOST_WAITING): LogFollowers {
  const waiters = new Set<Waiter>();
  const reading = new Map<string, Promise<ReadLog | null>>();
  let stopping = false;
  const loop = createLoop({ name: 'logs', clock, body: look, minMs: () => MIN_POLL_MS, events });
  events.subscribe((event) => {
    if (event.type !== 'runLogAppended' || event.bytes === 0) return;
    endEach(({ runId, attempt }) => runId === event.runId && attempt === event.attempt);
  });

  async function look(): Promise<number> {
    const positions = [...waiters].map(({ position }) => position);
    if (positions.length === 0) return IDLE_MS;
    const news = await database.run((db) => positionsWithNews(db, positions));
    endEach((position) => news.has(position));
    return POLL_MS;
  }

  function endEach(isMeant: (position: LogPosition) => boolean): void {
    for (const { position, end } of [...waiters]) if (isMeant(position)) end();
  }

  async function wait(position: LogPosition, { ms, signals }: Patience): Promise<void> {
    if (stopping || signals.some(({ aborted }) => aborted)) return;
    if (waiters.size >= most) throw new NotNow('too many calls wait for logs at this instance');
    const isFirst = waiters.size === 0;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        for (const signal of signals) signal.removeEventListener('abort', end);
        waiters.delete(waiter);
        resolve();
      };
      const timer = setTimeout(end, ms);
      const waiter = { position, end };
      waiters.add(waiter);
      for (const signal of signals) signal.addEventListener('abort', end);
      if (isFirst) loop.wake();
    });
  }

  return {
    ...turningOf(loop),
    wait,
    read: (what, read) => {
      const shared = reading.get(what) ?? read().finally(() => reading.delete(what));
      reading.set(what, shared);
      return shared;
    },
    waiting: () => waiters.size,
    isStopping: () => stopping,
    stop: async () => {
      stopping = true;
      endEach(() => true);
      await loop.stop();
    },
  };
}
