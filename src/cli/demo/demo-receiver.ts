import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../runtime/clock.ts';
import type { Instant } from '../../core/instant.ts';

/** One run that has reached the receiver. */
export interface DeliveredRun {
  scheduleId: string;
  scheduledFor: Instant;
  runId: string;
  attempt: number;
  /** The idempotency key that came with it. */
  key: string;
  at: Instant;
}

/**
 * The target of all schedules. It refuses nothing, takes the time that the URL names, and adds what arrives to `deliveries`, in the
 * order of arrival.
 */
export async function startReceiver(clock: Clock, deliveries: DeliveredRun[]) {
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { scheduledFor, ...run } = JSON.parse(await text(request)) as Sent;
    const key = String(request.headers['idempotency-key']);
    deliveries.push({ ...run, scheduledFor: Date.parse(scheduledFor), key, at: clock.now() });
    const holdMs = Number((request.url ?? '').slice(1));
    setTimeout(() => response.end('{}'), holdMs);
  };
  const server = createServer((request, response) => {
    // Its sender may be gone before all of it has come: then it was not delivered.
    take(request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

type Sent = Pick<DeliveredRun, 'runId' | 'scheduleId' | 'attempt'> & { scheduledFor: string };
