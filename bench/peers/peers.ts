/** Other schedulers and queues, for `npm run bench -- --peers`. They are installed for the run and are no dependencies. */
import type { Contestant } from '../contestant.ts';
import type { Stage } from '../herd.ts';
import type { Server } from '../support/processes/postgres.ts';
import type { Receiver } from '../support/processes/receiver.ts';
import { type BullmqWork, bullmqPeer } from './bullmq.ts';
import { graphileWorkerPeer } from './graphile-worker.ts';
import { installPackages } from './install.ts';
import { redisVersion } from './redis.ts';

/** Each is null where it cannot run here; `missing` says why. */
export interface Peers {
  /** A job scheduler of BullMQ for each fire, with a cron expression: what a schedule is to firelock. */
  bullmq: Peer | null;
  /** A delayed job of BullMQ for each fire, which nothing has to follow: what a one-off run is to firelock. */
  bullmqDelayed: Peer | null;
  /** A job of graphile-worker with `run_at` for each fire: the herd and the drain are the same to it. */
  graphileWorker: Peer | null;
  /** One sentence for each that is left out, for the notes of a scenario. */
  missing: readonly string[];
  stop: () => Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** Versions and settings that matter, in one line. */
  readonly setup: string;
  /** A worker process of its own with nothing in its queue; stop it before another is started. */
  start(receiver: Receiver): Promise<StartedPeer>;
}

interface StartedPeer {
  contestant: Contestant;
  /** For runHerd(): its `server` stores the jobs: Redis or PostgreSQL. */
  stage: Stage;
  /** Stops the contestant and drops what it stored. */
  stop: () => Promise<void>;
}

/** Jobs at once, each with a connection of its own to the receiver: as many as firelock has to one host. */
const concurrency = Number(process.env['FIRELOCK_DISPATCH_PER_HOST'] ?? 64);
const NO_REDIS =
  'BullMQ is left out: there is no redis-server on PATH (Debian and Ubuntu have it as the package redis-server).';

/** Installs them, which needs npm and its registry, and looks for a Redis; goes on without what cannot be had. */
export async function openPeers(server: Server, log: (line: string) => void): Promise<Peers> {
  const redis = redisVersion();
  const missing = redis === null ? [NO_REDIS] : [];
  log('installing the peers, outside the checkout');
  const packages = await installPackages().catch((error: unknown) => {
    missing.push(`All peers are left out: their packages could not be installed (${reasonOf(error)}).`);
    return null;
  });
  for (const line of missing) log(line);
  if (packages === null) {
    const nothing = { bullmq: null, bullmqDelayed: null, graphileWorker: null };
    return { ...nothing, missing, stop: () => Promise.resolve() };
  }
  const bullmq = (work: BullmqWork) =>
    redis === null ? null : bullmqPeer(work, { packages, redisVersion: redis, server, concurrency });
  return {
    bullmq: bullmq('schedulers'),
    bullmqDelayed: bullmq('delayed jobs'),
    graphileWorker: graphileWorkerPeer({ packages, server, concurrency }),
    missing,
    stop: () => {
      packages.remove();
      return Promise.resolve();
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
