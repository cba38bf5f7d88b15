import type { FirelockEvent } from '../../src/core/events.ts';
import { acceptRuns } from '../../src/operations/runs/submit-one-off-runs.ts';
import type { PullRequest } from '../../src/queues/pull-line.ts';
import { SECRETS } from './secrets.ts';
import { type PullQueues, createPullQueues } from '../../src/queues/pull-queues.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createLease } from '../../src/runtime/instance-lease.ts';
import { listen } from '../../src/postgres/connection/lasting-connection.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import type { PulledRun } from '../../src/store/queues/pull-claims.ts';
import { WORK_FOR_PULL } from '../../src/store/queues/queue-workers.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import { type AskedRun, oneOffOf } from './pipeline.ts';
import { NO_WAKE } from './working.ts';

/** What of an instance serves pull workers, on a database; with its events. */
export interface PullInstance {
  readonly id: string;
  readonly queues: PullQueues;
  readonly events: FirelockEvent[];
  /** How many claims it has begun. */
  claims(): number;
  /** Of the queue `work`, by `a worker`, one run, without waiting; unless told otherwise. */
  claim(request?: Partial<PullRequest>): Promise<PulledRun[]>;
  /** Records one-off runs as the API does, those of `work` unless told otherwise, and wakes who waits for them; answers their ids. */
  accept(...asked: (Partial<AskedRun> & { queue?: string })[]): Promise<string[]>;
  stop(): Promise<void>;
}

/** `around`: what a test puts between it and its database. */
export async function createPullInstance(
  url: string,
  around: (database: Database) => Database = (database) => database,
): Promise<PullInstance> {
  const opened = openDatabase(url, 4);
  const database = around(opened);
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const lease = createLease(systemClock, 3600);
  let claims = 0;
  const counting: Database = {
    ...database,
    transaction: (work, limitMs) => {
      claims += 1;
      return database.transaction(work, limitMs);
    },
  };
  const queues = createPullQueues({
    database: counting,
    clock: systemClock,
    events: bus,
    lease,
  });
  const hints = listen(url, { [WORK_FOR_PULL]: () => queues.wake() });
  await queues.start();
  return {
    id: lease.instanceId,
    queues,
    events,
    claims: () => claims,
    claim: (request = {}) => queues.claim({ ...REQUEST, signal: new AbortController().signal, ...request }),
    accept: async (...asked) => {
      const wake = { ...NO_WAKE, workers: () => queues.announce() };
      const deps = {
        database: opened,
        events: bus,
        targets: createTargetRegistry([]),
        secrets: SECRETS,
        scope: null,
        wake,
      };
      const { runs } = await acceptRuns(
        deps,
        asked.map((one) => oneOffOf({ ...one, queue: one.queue ?? REQUEST.queue })),
      );
      return runs.map(({ id }) => id);
    },
    stop: async () => {
      await queues.stop();
      await hints.stop();
      await opened.close();
    },
  };
}

const REQUEST = {
  queue: 'work',
  workerId: 'a worker',
  max: 1,
  leaseSeconds: 60,
  waitSeconds: 0,
  scope: null,
};
