// @module-tag attack
import { expect, onTestFinished, test } from 'vitest';
import { startApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

const HALF = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n';

async function startLimited(limits: Parameters<typeof startApi>[1] & object) {
  const api = await startApi(undefined, limits);
  onTestFinished(() => api.stop());
  const connect = (beginning: string, localAddress?: string) =>
    openConnection(api.url, { beginning, ...(localAddress === undefined ? {} : { localAddress }) });
  return { api, connect };
}

test('of half-open connections from one address the oldest give way; those of others stay, and requests are answered', async () => {
  const { connect } = await startLimited({ limits: { mostOfAddress: 10 } });
  const neighbour = await connect(`${HALF}\r\n`, '127.0.0.2');
  await neighbour.answered();
  const opened = [];
  for (let count = 0; count < 30; count += 1) opened.push(await connect(HALF));
  await Promise.all(opened.slice(0, 20).map(({ closed }) => closed()));
  // From the same address too: it is the newest.
  await (await connect(`${HALF}\r\n`)).answered();
  expect(opened.slice(21).map(({ socket }) => socket.destroyed)).toEqual(Array(9).fill(false));
  neighbour.socket.write(`${HALF}\r\n`);
  await neighbour.answered(2);
});

test('when all connections are taken, from however many addresses, one that brings a request is still served', async () => {
  const { connect } = await startLimited({ limits: { most: 20 } });
  const opened = [];
  for (let count = 0; count < 60; count += 1) {
    const begun = ['', HALF, `${HALF}\r\n`][count % 3] ?? '';
    opened.push(await connect(begun, `127.0.0.${2 + (count % 7)}`));
  }
  await Promise.all(opened.slice(0, 40).map(({ closed }) => closed()));
  await (await connect(`${HALF}\r\n`)).answered();
});

test('a request under way, such as a claim that waits, does not give way', async () => {
  const { api, connect } = await startLimited({ limits: { most: 10, mostOfAddress: 5 } });
  const claim = { workerId: 'w', waitSeconds: 60 };
  const waiting = api.call('POST', '/api/v1/queues/work/claim', claim);
  await until(async () => ((await api.sql`SELECT FROM queue_workers`).length > 0 ? true : null));
  for (let count = 0; count < 30; count += 1) await connect(HALF);
  const target = { type: 'pull', queue: 'work' };
  expect((await api.call('POST', '/api/v1/runs', { target })).status).toBe(201);
  await api.pullQueues.stop();
  expect((await waiting).status).toBe(200);
});

test('a trusted proxy may keep as many connections as it likes, as long as there is room', async () => {
  const limits = { mostOfAddress: 3, isProxy: (address: string) => address === '127.0.0.1' };
  const { connect } = await startLimited({ limits });
  const idle = [];
  for (let count = 0; count < 10; count += 1) idle.push(await connect(`${HALF}\r\n`));
  for (const { answered } of idle) await answered();
  for (const { socket } of idle) socket.write(`${HALF}\r\n`);
  for (const { answered } of idle) await answered(2);
});
