// @module-tag attack
// @module-tag long
import { type Server, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type Daemon, type Variables, readyDaemon } from '../support/daemon.ts';
import { databaseOfTest } from '../support/of-test.ts';
import { QUICK_START } from '../support/runner/quick-start.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

/** A daemon whose heap ends at so many MiB: what it holds beyond that ends the process. */
async function boundedDaemon(heapMiB: number, variables: Variables = {}): Promise<Daemon> {
  const { url } = await databaseOfTest();
  const NODE_OPTIONS = `${QUICK_START.NODE_OPTIONS} --max-old-space-size=${heapMiB}`;
  return readyDaemon(url, { ...variables, NODE_OPTIONS });
}

/** Its memory, heap and buffers, in MiB. */
async function residentMiB(daemon: Daemon): Promise<number> {
  const { text } = await daemon.call('GET', '/metrics');
  return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 1024 / 1024;
}

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

const HOST = ' HTTP/1.1\r\nHost: localhost\r\n';
const BODY_BYTES = 255 * 1024;

test('pipelines, answers that nobody reads and bodies for no route do not fill the memory of a daemon', async () => {
  const daemon = await boundedDaemon(96);
  const before = await residentMiB(daemon);
  const openAll = async (count: number, beginning: string, reads = false) => {
    for (let opened = 0; opened < count; opened += 1)
      await openConnection(daemon.url, { beginning, reads, localAddress: `127.0.1.${1 + (opened % 4)}` });
  };
  await openAll(8, `GET /metrics${HOST}\r\n`.repeat(1500));
  await openAll(300, `GET /openapi.json${HOST}\r\n`.repeat(100));
  const announced = `Content-Type: application/json\r\nContent-Length: ${BODY_BYTES + 1}\r\n\r\n`;
  await openAll(300, `POST /nope${HOST}${announced}${'x'.repeat(BODY_BYTES)}`, true);
  const alive = await openConnection(daemon.url, { beginning: `GET /healthz${HOST}\r\n` });
  await alive.answered();
  expect(alive.statuses()).toEqual([200]);
  expect((await residentMiB(daemon)) - before).toBeLessThan(250);
  expect(daemon.isRunning()).toBe(true);
});
