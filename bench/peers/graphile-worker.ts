import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from '../contestant.ts';
import type { BenchDatabase, Server } from '../support/processes/postgres.ts';
import type { Packages } from './install.ts';
import type { Peer } from './peers.ts';
import { type Worker, type WorkerOptions, createLead, startWorker } from './worker.ts';

export interface GraphileWorkerOptions extends WorkerOptions {
  databaseUrl: string;
  localQueueSize: number;
  pollMs: number;
}

interface Here {
  packages: Packages;
  server: Server;
  concurrency: number;
}

/** Of its page on performance: many more than work at once, so that one fetch lasts for a while. */
const LOCAL_QUEUE_SIZE = 500;
/** It hears of new jobs, not of jobs that become due: with its 2,000 ms these would wait for a second on average. */
const POLL_MS = 100;
const SETTLED_POLL_MS = 50;

export function graphileWorkerPeer({ packages, server, concurrency }: Here): Peer {
  return {
    name: 'graphile-worker',
    setup: [
      `graphile-worker ${packages.version('graphile-worker')}, concurrentJobs ${concurrency}`,
      `maxPoolSize ${concurrency + 2}`,
      `localQueue.size ${LOCAL_QUEUE_SIZE}`,
      'completeJobBatchDelay 0, failJobBatchDelay 0',
      `pollInterval ${POLL_MS}`,
      'on the same PostgreSQL',
    ].join(', '),
    start: async (receiver) => {
      const database = await server.createDatabase();
      const options: GraphileWorkerOptions = {
        packages: packages.directory,
        targetUrl: receiver.url,
        concurrency,
        databaseUrl: database.url,
        localQueueSize: LOCAL_QUEUE_SIZE,
        pollMs: POLL_MS,
      };
      const worker = await startWorker(new URL('graphile-worker-process.ts', import.meta.url), options).catch(
        async (error: unknown) => {
          await database.drop();
          throw error;
        },
      );
      return {
        contestant: contestantOf(worker, database),
        stage: { server, database, receiver },
        stop: async () => {
          await worker.stop();
          await database.drop();
        },
      };
    },
  };
}

function contestantOf(worker: Worker, database: BenchDatabase): Contestant {
  const lead = createLead(1);
  const armed = new Map<number, readonly string[]>();
  return {
    name: 'graphile-worker',
    pid: worker.pid,
    vacuumed: true,
    leadSeconds: lead.seconds,
    arm: (count, dueAt) =>
      lead.timed(count, async () => {
        armed.set(dueAt, (await worker.ask({ type: 'arm', count, dueAt })).runIds);
      }),
    settled: async (_count, _dueAt, arrived) => {
      await arrived;
      while (await hasJobs(database)) await sleep(SETTLED_POLL_MS);
      return Date.now();
    },
    // It deletes a job that succeeded and keeps one that failed, so an empty table is all the history there is.
    history: async (count, dueAt) => {
      const ids = new Set(armed.get(dueAt));
      if (await hasJobs(database)) throw new Error('graphile-worker: jobs are left');
      if (ids.size !== count) throw new Error(`graphile-worker: ${ids.size} jobs instead of ${count}`);
      return ids;
    },
    stop: () => worker.stop(),
  };
}

async function hasJobs(database: BenchDatabase): Promise<boolean> {
  const [row] = await database.query('SELECT EXISTS (SELECT FROM graphile_worker.jobs) AS found');
  return row?.['found'] !== false;
}
