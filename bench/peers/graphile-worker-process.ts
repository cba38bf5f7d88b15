/** A runner of graphile-worker in a process of its own. */
import type { GraphileWorkerOptions } from './graphile-worker.ts';
import { requireFrom } from './install.ts';
import { createDelivery, serveWorker } from './worker.ts';

/** What is used of graphile-worker, which is not installed where the types are checked. */
interface GraphileWorker {
  Logger: new (create: () => () => void) => unknown;
  run: (options: {
    preset: { worker: Record<string, unknown> };
    taskList: Record<string, (payload: Payload, helpers: { job: Job }) => Promise<void>>;
    parsedCronItems: [];
    noHandleSignals: boolean;
  }) => Promise<{ promise: Promise<void> }>;
  makeWorkerUtils: (options: { connectionString: string; logger: unknown }) => Promise<Utils>;
}

interface Utils {
  addJobs: (jobs: readonly { identifier: string; payload: Payload; runAt: Date }[]) => Promise<readonly Job[]>;
}

interface Payload {
  scheduleId: string;
  scheduledFor: string;
}

interface Job {
  id: string;
  attempts: number;
}

const TASK = 'herd';
const BATCH = 1000;

// It asks this once, when it is loaded.
process.env['NO_LOG_SUCCESS'] = '1';

const options = JSON.parse(process.argv[2] ?? '{}') as GraphileWorkerOptions;
const { Logger, makeWorkerUtils, run } = requireFrom(options.packages)('graphile-worker') as GraphileWorker;
const deliver = createDelivery(options);
const connectionString = options.databaseUrl;
const logger = new Logger(() => () => undefined);
const runner = await run({
  preset: {
    worker: {
      connectionString,
      concurrentJobs: options.concurrency,
      maxPoolSize: options.concurrency + 2,
      pollInterval: options.pollMs,
      localQueue: { size: options.localQueueSize },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger,
    },
  },
  taskList: {
    [TASK]: async ({ scheduleId, scheduledFor }, { job }) => {
      if (job.attempts !== 1) throw new Error(`job ${job.id} is tried again`);
      await deliver({ runId: job.id, scheduleId, scheduledFor });
    },
  },
  parsedCronItems: [],
  noHandleSignals: true,
});
// Its end is an error until the process is told to end.
void runner.promise.then(() => {
  throw new Error('graphile-worker stopped');
});

const utils = await makeWorkerUtils({ connectionString, logger });

serveWorker(async (message) => {
  if (message.type !== 'arm') throw new Error(`graphile-worker is not asked for ${message.type}`);
  const ids: string[] = [];
  for (let first = 0; first < message.count; first += BATCH) {
    const jobs = Array.from({ length: Math.min(BATCH, message.count - first) }, (_, index) => ({
      identifier: TASK,
      payload: { scheduleId: `herd-${first + index}`, scheduledFor: new Date(message.dueAt).toISOString() },
      runAt: new Date(message.dueAt),
    }));
    ids.push(...(await utils.addJobs(jobs)).map(({ id }) => id));
  }
  return ids;
});
