import { setTimeout as sleep } from 'node:timers/promises';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { putSchedules } from '../schedules.ts';
import { type Daemon, startDaemon } from './daemon.ts';

/** A load must not begin with connections that were closed since the one before. */
const KEEP_ALIVE_MS = 300_000;

export type Query = (statement: string) => Promise<Record<string, unknown>[]>;

/** A target that takes its time, and says what came when. */
export function startSlowReceiver(answerAfterMs: number): Promise<Receiver> {
  return startReceiver((_, response) => {
    setTimeout(() => response.writeHead(204).end(), answerAfterMs);
  }, KEEP_ALIVE_MS);
}

export interface Member {
  daemon: Daemon;
  instanceId: string;
}

export interface Fleet {
  members: Member[];
  add(): Promise<void>;
  stop(): Promise<void>;
}

interface FleetOptions {
  main: string;
  databaseUrl: string;
  query: Query;
  variables?: Record<string, string>;
}

/** Several daemons on one database; which process is which instance is known from their being started one by one. */
export async function startFleet(size: number, options: FleetOptions): Promise<Fleet> {
  const { main, databaseUrl, query, variables = {} } = options;
  const members: Member[] = [];
  const fleet: Fleet = {
    members,
    add: async () => {
      // What an instance warns of here is what is done to it.
      const quiet = { LOG_LEVEL: 'error', ...variables };
      const daemon = await startDaemon({ main, databaseUrl, nodeOptions: [], variables: quiet });
      const [newest] = await query('SELECT id FROM instances ORDER BY started_at DESC LIMIT 1');
      members.push({ daemon, instanceId: String(newest?.['id']) });
    },
    stop: async () => {
      await Promise.all(members.map(({ daemon }) => daemon.stop()));
    },
  };
  while (members.length < size) await fleet.add();
  return fleet;
}

/** So many fires a second at the target, all in the same moment of it. */
export async function putLoad(daemon: Daemon, firesPerSecond: number, url: string): Promise<void> {
  const items = Array.from({ length: firesPerSecond }, (_, index) => ({
    id: `load-${index}`,
    cron: '* * * * * *',
    target: { type: 'http', url },
  }));
  await putSchedules(daemon.url, items);
}

/** The moment so long after the next whole second but one. */
export async function afterSecond(ms: number): Promise<void> {
  await sleep(Math.ceil((Date.now() + 1000) / 1000) * 1000 + ms - Date.now());
}
