// @module-tag attack
import type { Socket } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { SCHEDULE, sharedApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

const eve = newToken('eve', 'admin');
const bob = newToken('bob', 'admin');
const MOST = 100;

const api = sharedApi({ apiTokens: [eve.known, bob.known], tokenRequestsPerSecond: 10_000 });
beforeAll(async () => {
  expect((await call(bob, 'PUT', 'schedules/there', SCHEDULE)).status).toBe(201);
});

const call = (who: typeof eve, method: string, path: string, body?: unknown) =>
  api.call(method, `/api/v1/${path}`, body, who.headers);
const statusOf = async (...asked: Parameters<typeof call>) => (await call(...asked)).status;

/** A PUT whose body, or the rest of it, does not come. */
async function open(path: string, body = ''): Promise<Socket> {
  const { socket } = await openConnection(api.url, {
    beginning:
      `PUT /api/v1/${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${eve.headers.authorization}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length || 9}\r\n\r\n${body}`,
  });
  return socket;
}

const eveIsRefused = async () => ((await statusOf(eve, 'GET', 'me')) === 429 ? true : null);
const eveIsServed = async () => ((await statusOf(eve, 'GET', 'me')) === 200 ? true : null);

test('a caller with a hundred calls under way is refused another, but not what workers call; others are served', async () => {
  const sockets = await Promise.all(Array.from({ length: MOST }, () => open('limits/eve')));
  await until(eveIsRefused);
  const refused = await call(eve, 'GET', 'schedules');
  expect([refused.headers.get('retry-after'), refused.body['detail']]).toEqual(['1', 'too many calls are in progress']);
  expect(await statusOf(eve, 'POST', 'queues/work/claim', { workerId: 'w' })).toBe(200);
  expect(await statusOf(eve, 'POST', 'schedules/there/fire')).toBe(202);
  expect(await statusOf(bob, 'GET', 'schedules')).toBe(200);
  // One that ends makes room for another.
  sockets[0]?.destroy();
  await until(eveIsServed);
});

test('a caller that hangs up has its calls under way until their work has ended', async () => {
  const sql = api.sql;
  await sql`BEGIN`;
  await sql`SELECT FROM schedules WHERE id = 'there' FOR UPDATE`;
  const sockets = await Promise.all(
    Array.from({ length: MOST }, () => open('schedules/there', JSON.stringify(SCHEDULE))),
  );
  await until(eveIsRefused);
  for (const socket of sockets) socket.destroy();
  // The answer over a new connection comes after the server has noticed that those are gone.
  for (let asked = 0; asked < 10; asked += 1) expect(await statusOf(bob, 'GET', 'me')).toBe(200);
  expect(await eveIsRefused()).toBe(true);
  await sql`COMMIT`;
  await until(eveIsServed);
});

test('calls that wait for work are counted by themselves', async () => {
  const gone = new AbortController();
  onTestFinished(() => {
    gone.abort();
  });
  const waiting = Array.from({ length: 20 }, () =>
    fetch(`${api.url}/api/v1/queues/idle/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...eve.headers },
      body: JSON.stringify({ workerId: 'w', waitSeconds: 60 }),
      signal: gone.signal,
    }).catch(() => null),
  );
  const sockets = await Promise.all(Array.from({ length: MOST - 1 }, () => open('limits/eve')));
  expect(await statusOf(eve, 'GET', 'me')).toBe(200);
  for (const socket of sockets) socket.destroy();
  gone.abort();
  await Promise.all(waiting);
});
