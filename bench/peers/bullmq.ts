import type { Contestant } from '../contestant.ts';
import { cpuSecondsOfTree } from '../support/measures/cpu.ts';
import type { Server } from '../support/processes/postgres.ts';
import type { Packages } from './install.ts';
import type { Peer } from './peers.ts';
import { startRedis } from './redis.ts';
import { type Worker, type WorkerOptions, createLead, startWorker } from './worker.ts';

/** For each fire a scheduler that has a cron expression, or just a delayed job. */
export type BullmqWork = 'schedulers' | 'delayed jobs';

export interface BullmqOptions extends WorkerOptions {
  port: number;
  work: BullmqWork;
}

interface Here {
  packages: Packages;
  redisVersion: string;
  server: Server;
  concurrency: number;
}

/** Schedulers are made one by one, each with a round trip. */
const SECONDS_PER_THOUSAND = { schedulers: 2, 'delayed jobs': 1 } as const;

export function bullmqPeer(work: BullmqWork, { packages, redisVersion, server, concurrency }: Here): Peer {
  const name = `BullMQ, ${work}`;
  return {
    name,
    setup: [
      `BullMQ ${packages.version('bullmq')} with ioredis ${packages.version('ioredis')}, concurrency ${concurrency}`,
      `Redis ${redisVersion} of its own: appendonly yes, appendfsync everysec, no snapshots`,
    ].join('; '),
    start: async (receiver) => {
      const redis = await startRedis();
      const options: BullmqOptions = {
        packages: packages.directory,
        targetUrl: receiver.url,
        concurrency,
        port: redis.port,
        work,
      };
      const worker = await startWorker(new URL('bullmq-process.ts', import.meta.url), options).catch(
        async (error: unknown) => {
          await redis.stop();
          throw error;
        },
      );
      return {
        contestant: contestantOf(name, work, worker),
        stage: {
          server: { ...server, cpuSeconds: () => cpuSecondsOfTree(redis.pid) },
          database: {
            url: `redis://127.0.0.1:${redis.port}`,
            query: () => Promise.reject(new Error('Redis has no SQL')),
            calm: () => Promise.resolve(),
            checkpoint: () => Promise.resolve(),
            drop: () => redis.stop(),
          },
          receiver,
        },
        stop: async () => {
          await worker.stop();
          await redis.stop();
        },
      };
    },
  };
}

function contestantOf(name: string, work: BullmqWork, worker: Worker): Contestant {
  const lead = createLead(SECONDS_PER_THOUSAND[work]);
  return {
    name,
    pid: worker.pid,
    vacuumed: true,
    leadSeconds: lead.seconds,
    arm: (count, dueAt) => lead.timed(count, () => worker.ask({ type: 'arm', count, dueAt })),
    settled: async () => (await worker.ask({ type: 'settled' })).at,
    history: async (count, dueAt) => {
      const { runIds } = await worker.ask({ type: 'history', dueAt });
      const ids = new Set(runIds);
      if (ids.size !== count) throw new Error(`${name}: ${ids.size} completed jobs instead of ${count}`);
      return ids;
    },
    stop: () => worker.stop(),
  };
}
