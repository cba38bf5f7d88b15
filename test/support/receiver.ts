import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One delivery as the receiver saw it. */
export interface Arrival {
  at: number;
  path: string;
  headers: IncomingMessage['headers'];
  text: string;
  /** The handoff's body, parsed. */
  body: {
    runId: string;
    scheduleId: string;
    scheduledFor: string;
    attempt: number;
    trigger: string;
    recovery: { recoveries: number; recoveredAt: string } | null;
    payload: unknown;
  };
}

export type Answer = (arrival: Arrival, response: ServerResponse) => void;

export interface Receiver {
  url: string;
  arrivals: Arrival[];
  /** Resolves with the arrivals once there are this many. */
  arrived(count: number): Promise<Arrival[]>;
  close(): Promise<void>;
}

/** A real HTTP receiver on loopback that remembers what came; answers 200 unless told otherwise. */
export async function startReceiver(answer: Answer = (_, response) => response.end('{}')): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const waiting: { count: number; resolve: (arrivals: Arrival[]) => void }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const body = (text === '' ? {} : JSON.parse(text)) as Arrival['body'];
      const arrival = { at: Date.now(), path: request.url ?? '', headers: request.headers, text, body };
      arrivals.push(arrival);
      answer(arrival, response);
      for (const { count, resolve } of waiting) if (arrivals.length >= count) resolve(arrivals);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    arrived: (count) =>
      arrivals.length >= count
        ? Promise.resolve(arrivals)
        : new Promise((resolve) => waiting.push({ count, resolve })),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
