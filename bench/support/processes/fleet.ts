import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Daemon, startDaemon } from './daemon.ts';

export type Query = (statement: string) => Promise<Record<string, unknown>[]>;

interface Arrival {
  runId: string;
  attempt: number;
  /** Monotonic, of this process. */
  at: number;
}

export interface SlowReceiver {
  url: string;
  arrivals: Arrival[];
  stop(): Promise<void>;
}

/** A target that takes its time, and says what came when. */
export async function startSlowReceiver(answerAfterMs: number): Promise<SlowReceiver> {
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    const at = performance.now();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { runId, attempt } = JSON.parse(Buffer.concat(chunks).toString()) as Arrival;
      arrivals.push({ runId, attempt, at });
      setTimeout(() => {
        response.writeHead(204).end();
      }, answerAfterMs);
    });
  });
  server.keepAliveTimeout = 300_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    arrivals,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
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
  const response = await fetch(`${daemon.url}/api/v1/schedules/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  });
  if (!response.ok) throw new Error(`the load was refused: ${await response.text()}`);
}

/** The moment so long after the next whole second but one. */
export async function afterSecond(ms: number): Promise<void> {
  await sleep(Math.ceil((Date.now() + 1000) / 1000) * 1000 + ms - Date.now());
}

export async function until<T>(ask: () => Promise<T | null> | T | null, limitMs: number): Promise<T> {
  for (const limit = performance.now() + limitMs; performance.now() < limit;) {
    const answer = await ask();
    if (answer !== null) return answer;
    await sleep(20);
  }
  throw new Error(`did not happen within ${limitMs / 1000} s`);
}
