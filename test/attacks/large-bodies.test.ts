// @module-tag attack
// @module-tag long
import { type Server, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../support/until.ts';
import { boundedDaemon, residentMiB } from './bounded-daemon.ts';

const ADDRESSES = Array.from({ length: 8 }, (_, index) => `127.0.2.${index + 1}`);
/** Of a megabyte, once it is filled in. */
const BODY = { template: '{{payload}}'.repeat(18), contentType: 'text/plain' };
const SLOTS = { FIRELOCK_DISPATCH_CONCURRENCY: '1024', FIRELOCK_DISPATCH_PER_HOST: '1024' };
const PAYLOAD = 'x'.repeat(56 * 1024);

test.each([
  ['nobody answers', true],
  ['nobody listens', false],
])(
  'five hundred runs whose bodies have a megabyte each, where %s, do not fill the memory of a daemon',
  async (_, listens) => {
    const port = await portOf(listens);
    const daemon = await boundedDaemon(160, SLOTS);
    const before = await residentMiB(daemon);
    for (let batch = 0; batch < 4; batch += 1) {
      const items = Array.from({ length: 125 }, (__, index) => ({
        ref: `r${index}`,
        payload: PAYLOAD,
        timeoutSeconds: 600,
        target: {
          type: 'http',
          url: `http://${ADDRESSES[index % ADDRESSES.length] ?? ''}:${port}/`,
          body: BODY,
        },
      }));
      const { status } = await daemon.call('POST', '/api/v1/runs/batch', { items });
      expect(status).toBe(201);
    }
    const attempts = async () => {
      const { text } = await daemon.call('GET', '/metrics');
      const underWay = Number(/^firelock_in_flight_handoffs (\d+)/m.exec(text)?.[1]);
      const ended = [...text.matchAll(/^firelock_handoffs_total\{.*\} (\d+)/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
      return { underWay, ended };
    };
    await until(async () => {
      const { underWay, ended } = await attempts();
      return (listens ? underWay >= 400 : ended >= 500) || null;
    });
    const grown = (await residentMiB(daemon)) - before;
    expect(grown).toBeLessThan(400);
    expect(daemon.isRunning()).toBe(true);
  },
);

/** A port at which connections are taken, and nothing more; or at which there is none. */
async function portOf(listens: boolean): Promise<number> {
  const server: Server = createServer((socket) => socket.on('error', () => undefined).resume());
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as { port: number };
  const close = () => new Promise((resolve) => server.close(resolve));
  if (!listens) await close();
  else onTestFinished(() => void close());
  return port;
}
