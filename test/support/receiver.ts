import type { IncomingMessage, ServerResponse } from 'node:http';
import { serveHttp, withBody } from './loopback.ts';

/** One delivery as the receiver saw it. */
export interface Arrival {
  at: number;
  path: string;
  headers: IncomingMessage['headers'];
  text: string;
  /** The handoff's body, parsed; empty if it is no JSON. */
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
export async function startReceiver(
  answer: Answer = (_, response) => response.end('{}'),
  keepAliveMs?: number,
): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const waiting: { count: number; resolve: (arrivals: Arrival[]) => void }[] = [];
  const receive = withBody((request, text, response) => {
    const body = parsed(text);
    const arrival = { at: Date.now(), path: request.url ?? '', headers: request.headers, text, body };
    arrivals.push(arrival);
    answer(arrival, response);
    for (const { count, resolve } of waiting) if (arrivals.length >= count) resolve(arrivals);
  });
  const { url, close } = await serveHttp(receive, keepAliveMs);
  return {
    url,
    arrivals,
    arrived: (count) =>
      arrivals.length >= count ? Promise.resolve(arrivals) : new Promise((resolve) => waiting.push({ count, resolve })),
    close,
  };
}

function parsed(text: string): Arrival['body'] {
  try {
    return JSON.parse(text) as Arrival['body'];
  } catch {
    return {} as Arrival['body'];
  }
}
