import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../../runtime/clock.ts';
import type { DeliveredRun, Deliveries } from './delivery.ts';

/** The target of all schedules but those that a worker pulls. It refuses nothing, and takes the time that the URL names. */
export interface DemoReceiver {
  readonly url: string;
  close(): void;
}

interface Options {
  clock: Clock;
  deliveries: Deliveries;
  /** Of schedules that want to be told that the work is done. */
  onAccepted: (runId: string) => void;
}

export async function startReceiver({ clock, deliveries, onAccepted }: Options): Promise<DemoReceiver> {
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const [, kind, holdMs] = (request.url ?? '').split('/');
    const delivery = deliveryOf(request, await text(request), clock);
    deliveries.add(delivery);
    response.once('close', () => {
      delivery.endedAt = clock.now();
    });
    setTimeout(() => {
      response.writeHead(kind === 'callback' ? 202 : 200, { 'content-type': 'application/json' }).end('{}');
      if (kind === 'callback') onAccepted(delivery.runId);
    }, Number(holdMs));
  };
  const server = createServer((request, response) => {
    // Its sender may be gone before all of it has come: then it was not delivered.
    take(request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function deliveryOf({ headers }: IncomingMessage, body: string, clock: Clock): DeliveredRun {
  const { runId, scheduleId, scheduledFor, attempt } = JSON.parse(body) as {
    runId: string;
    scheduleId: string;
    scheduledFor: string;
    attempt: number;
  };
  const key = String(headers['idempotency-key']);
  return {
    ...{ scheduleId, scheduledFor: Date.parse(scheduledFor), runId, attempt, key },
    ...{ at: clock.now(), endedAt: null },
  };
}
