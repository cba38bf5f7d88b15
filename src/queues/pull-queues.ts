/**
 * Guarantees: a run of a queue is leased to one worker, which waits for it here without holding a connection; work is
 *   found whichever instance recorded it, and when it comes due.
 * Transaction: one for a claim and all that its answer contains.
 * If the process dies here: a run that was claimed and not answered goes on when its lease runs out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop/loop.ts';
import { type Database, type LoopDeps, STATEMENT_LIMIT_MS } from '../postgres/database.ts';
import { NotNow } from '../postgres/errors.ts';
import { type Pulled, type PulledRun, claimPullRuns, takeBackIfStillLeased } from '../store/queues/pull-claims.ts';
import { hintAtWork, queuesWithWork } from '../store/queues/queue-workers.ts';
import { claimDueRuns } from '../store/runs/claims/claim-due-runs.ts';
import { NO_ROOM } from '../store/runs/claims/claims.ts';
import { createAttendance, createWorkerSightings } from './worker-sightings.ts';
import { type PullRequest, type PullLine, createPullLine } from './pull-line.ts';

interface PullQueueDeps extends LoopDeps {
  lease: Pick<Lease, 'instanceId'>;
}

export interface PullQueues extends Turning {
  /**
   * Runs for a worker: at once if there are any, otherwise as soon as there are; none once its time is up, or when it
   * goes away.
   * @throws NotNow once it stops, and the error that keeps the database from answering
   */
  claim(request: PullRequest): Promise<PulledRun[]>;
  isStopping(): boolean;
  /** There may be work for workers that wait here. */
  wake(): void;
  /** The same, with a hint to the other instances. */
  announce(): void;
  /** Answers all waiting workers with nothing; from then on it serves none. */
  stop(): Promise<void>;
}

/** How often queues with waiting workers are looked at. */
const POLL_MS = 500;
/** The least time between two looks. */
const MIN_POLL_MS = 10;
const IDLE_MS = 60_000;
const MAX_PROMOTED = 1_000;

// oxlint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createPullQueues(deps: PullQueueDeps): PullQueues {
  const { database, clock, events, lease } = deps;
  const lines = new Map<string, PullLine>();
  const sightings = createWorkerSightings(deps);
  const attendance = createAttendance({ database, clock, written: () => sightings.settled() });
  const hints = createPullHints(database);
  const takingBack = new Set<Promise<void>>();
  let trouble: Error | null = null;
  let stopping = false;
  /** No worker waited at the last look, so the next look is far off. */
  let idle = true;
  const loop = createLoop({ name: 'pull', clock, body: look, minMs: () => MIN_POLL_MS, events });

  /** Two statements for all queues that workers wait at, and none where no worker waits. */
  async function look(): Promise<number> {
    const queues = [...lines.keys()];
    idle = queues.length === 0;
    if (idle) return IDLE_MS;
    const { instanceId } = lease;
    const noClaims = { ...NO_ROOM, instanceId, targetTypes: [], atMost: MAX_PROMOTED };
    const { msUntilNextDue } = await observed(database.run((db) => claimDueRuns(db, noClaims)));
    const withWork = await observed(database.run((db) => queuesWithWork(db, queues)));
    for (const queue of withWork) lines.get(queue)?.look();
    return Math.ceil(Math.min(POLL_MS, msUntilNextDue ?? Infinity));
  }

  function lineOf(queue: string): PullLine {
    const known = lines.get(queue);
    if (known) return known;
    const line = createPullLine({
      claim: (asks) => claim(queue, asks),
      takeBack,
      trouble: () => trouble,
      onEmpty: () => {
        if (lines.get(queue) === line) lines.delete(queue);
      },
    });
    lines.set(queue, line);
    return line;
  }

  async function claim(queue: string, asks: readonly PullRequest[]): Promise<Pulled> {
    const { instanceId } = lease;
    const work = database.transaction((tx) => claimPullRuns(tx, { queue, instanceId, asks }), STATEMENT_LIMIT_MS);
    return observed(work);
  }

  async function observed<T>(work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      trouble = null;
      return result;
    } catch (error) {
      trouble = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  }

  /** If that fails, the leases run out. */
  function takeBack(runs: readonly PulledRun[]): void {
    const work = database
      .run((db) => takeBackIfStillLeased(db, runs))
      .then(announce, () => undefined)
      .finally(() => takingBack.delete(work));
    takingBack.add(work);
  }

  function isStopping(): boolean {
    return stopping;
  }

  function wake(): void {
    if (lines.size > 0) loop.wake();
  }

  function announce(): void {
    wake();
    if (!stopping) hints.send();
  }

  return {
    ...turningOf(loop),
    claim: async (request) => {
      // A worker that got an empty answer would ask again at once, and again.
      if (stopping) throw new NotNow('this instance is shutting down; call another one');
      const { queue, workerId, caller = '' } = request;
      const isListed = sightings.saw({ queue, workerId }, caller);
      if (isListed && trouble === null) await attendance.attend(queue);
      if (isStopping()) return [];
      const claimed = lineOf(queue).claim(request);
      if (idle && request.waitSeconds > 0) loop.wake();
      const runs = await claimed;
      if (runs.length > 0) emitClaimed(events, request, runs);
      return runs;
    },
    isStopping,
    wake,
    announce,
    stop: async () => {
      stopping = true;
      await Promise.all([...lines.values()].map((line) => line.dismiss()));
      await Promise.all([loop.stop(), hints.stop(), sightings.settled(), ...takingBack]);
    },
  };
}

function emitClaimed(events: EventBus, { queue, workerId }: PullRequest, runs: readonly PulledRun[]): void {
  events.emit({ type: 'pullRunsClaimed', queue, workerId, count: runs.length });
  for (const { run, isFirst } of runs) {
    if (isFirst && run.latenessMs !== null)
      events.emit({ type: 'runStarted', runId: run.id, latenessMs: run.latenessMs });
  }
}

interface PullHints {
  send(): void;
  stop(): Promise<void>;
}

/** The least time between two hints. */
const MIN_MS = 100;

/** Other instances get a hint at work soon, and not more often than they can use it. Without one they find it when they look. */
function createPullHints(database: Database): PullHints {
  const stopping = new AbortController();
  let again = false;
  let sending: Promise<void> | undefined;

  async function send(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false;
      // A failure does no harm: without a database, there is nothing to claim either.
      await database.run(hintAtWork).catch(() => undefined);
      await delay(MIN_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
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
