// @module-tag long
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../../support/of-test.ts';
import { daemonHere } from '../../support/daemon-here.ts';
import { readyDaemon } from '../../support/daemon.ts';
import type { AnyDaemon } from '../../support/programs.ts';
import { until } from '../../support/until.ts';

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ body }, response) => {
    open.set(response, body.runId);
    response.on('close', () => open.delete(response));
    most = Math.max(most, new Set(open.values()).size);
  }),
);
/** Requests that wait for their answer; the run of each. */
let open: Map<ServerResponse, string>;
let most: number;

beforeEach(() => {
  open = new Map();
  most = 0;
});

const QUICK = { FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1', FIRELOCK_INSTANCE_TTL_SECONDS: '4' };
const limitOf = async (daemon: AnyDaemon) =>
  (await daemon.call('GET', '/api/v1/limits/l')).body as { running: number; waiting: number };

const answerOne = () => {
  const [response] = open.keys();
  if (response && open.delete(response)) response.end('{}');
};
/** Answers one after the other until no run of the limit is left. */
async function answeredAll(daemon: AnyDaemon): Promise<void> {
  const answering = setInterval(answerOne, 50);
  try {
    await until(async () => {
      const { running, waiting } = await limitOf(daemon);
      return running + waiting === 0 || null;
    });
  } finally {
    clearInterval(answering);
  }
}

it('a limit is neither exceeded nor left half used when a daemon is killed with its places', async () => {
  const one = await readyDaemon(database.url, QUICK);
  const other = await daemonHere(database.url, QUICK);
  expect((await one.call('PUT', '/api/v1/limits/l', { maxRunning: 4 })).status).toBe(201);
  const target = { type: 'http', url: receiver.url };
  const items = Array.from({ length: 30 }, (_, index) => ({ ref: `r${index}`, target, limit: 'l' }));
  expect((await one.call('POST', '/api/v1/runs/batch', { items })).status).toBe(201);
  const isFull = () => until(() => new Set(open.values()).size === 4 || null);
  for (let answered = 0; answered < 6; answered += 1) {
    await isFull();
    answerOne();
  }
  await isFull();
  one.signal('SIGKILL');
  await one.exited;
  // Those that the dead one had under way are taken over: nothing is answered before, so that they are not the last ones.
  await isFull();
  await answeredAll(other);
  expect(most).toBe(4);
  const { body } = await other.call('GET', '/api/v1/runs?limit=50&status=succeeded');
  expect((body as { items: unknown[] }).items).toHaveLength(30);
});

it('a daemon that is killed while maintenance holds runs takes no place with it, and lets no run begin', async () => {
  const one = await readyDaemon(database.url, QUICK);
  expect((await one.call('PUT', '/api/v1/limits/l', { maxRunning: 2 })).status).toBe(201);
  const target = { type: 'http', url: receiver.url };
  const items = Array.from({ length: 5 }, (_, index) => ({ ref: `r${index}`, target, limit: 'l' }));
  expect((await one.call('POST', '/api/v1/runs/batch', { items })).status).toBe(201);
  await until(() => (new Set(open.values()).size === 2 ? true : null));
  const other = await daemonHere(database.url, QUICK);
  const set = (body: object) => other.call('POST', '/api/v1/maintenance', body);
  expect((await set({ on: true, dispatch: 'hold' })).status).toBe(200);
  one.signal('SIGKILL');
  await one.exited;
  // Recovery takes them over, and they wait.
  await until(async () => ((await limitOf(other)).running === 0 ? true : null));
  expect(await limitOf(other)).toMatchObject({ running: 0, waiting: 5 });
  expect(receiver.arrivals).toHaveLength(2);
  expect((await set({ on: false })).status).toBe(200);
  await answeredAll(other);
  expect([most, receiver.arrivals.length]).toEqual([2, 7]);
  const { body } = await other.call('GET', '/api/v1/runs?status=succeeded');
  expect((body as { items: unknown[] }).items).toHaveLength(5);
});
