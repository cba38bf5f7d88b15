// @module-tag attack
// @module-tag long
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Api, SCHEDULE, startApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { createMigrated, type TestDatabase } from '../support/postgres/cluster.ts';
import { openConnection } from './raw-connection.ts';

const MIB = 1024 * 1024;
const eve = newToken('eve', 'admin');
const bob = newToken('bob', 'admin');
const ann = newToken('ann', 'admin');
let database: TestDatabase;

beforeAll(async () => {
  database = await createMigrated();
  const api = await startApi(database.url);
  const payload = 'p'.repeat(60 * 1024);
  const items = Array.from({ length: 80 }, (_, index) => ({ ...SCHEDULE, id: `s${index}`, payload }));
  expect((await api.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
  await api.stop();
  return () => database.drop();
});

async function startLimited(answerLimits: { ofCaller: number; inAll: number }): Promise<Api> {
  const apiTokens = [eve.known, bob.known, ann.known];
  const api = await startApi(database.url, { apiTokens, answerLimits, tokenRequestsPerSecond: 10_000 });
  onTestFinished(() => api.stop());
  return api;
}

/** Asks for pages of 4 MiB on so many connections, of each more than its buffers take, and reads nothing. */
async function leaveUnread(api: Api, { headers }: typeof eve, connections: number): Promise<void> {
  const request = `GET /api/v1/schedules?limit=500 HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${headers.authorization}\r\n\r\n`;
  for (let opened = 0; opened < connections; opened += 1)
    await openConnection(api.url, { beginning: request.repeat(8), reads: false });
}

const get = (api: Api, { headers }: typeof eve, path: string) => api.call('GET', `/api/v1/${path}`, undefined, headers);

test('a caller that leaves too many bytes unread is answered 429 until they are read or gone; what it changes is done, others are served', async () => {
  const api = await startLimited({ ofCaller: 12 * MIB, inAll: 128 * MIB });
  await leaveUnread(api, eve, 5);
  const refused = await until(async () => {
    const answer = await get(api, eve, 'schedules?limit=500');
    return answer.status === 429 ? answer : null;
  });
  expect([refused.headers.get('retry-after'), refused.body['detail']]).toEqual([
    '1',
    'too many bytes of answers to you are not read yet',
  ]);
  const { status } = await api.call('PUT', '/api/v1/limits/made', { maxRunning: 1 }, eve.headers);
  expect(status).toBe(201);
  expect((await get(api, bob, 'schedules?limit=500')).status).toBe(200);
});

test('when the answers to all are too many bytes, those who ask for more are answered 503, and Retry-After', async () => {
  const api = await startLimited({ ofCaller: 12 * MIB, inAll: 16 * MIB });
  await leaveUnread(api, eve, 4);
  await leaveUnread(api, bob, 4);
  const refused = await until(async () => {
    const answer = await get(api, ann, 'schedules?limit=500');
    return answer.status === 503 ? answer : null;
  });
  expect([refused.headers.get('retry-after'), refused.body['detail']]).toEqual([
    '5',
    'too many bytes of answers are not read yet',
  ]);
});

test('one answer alone is sent, however large it is; what was refused or read holds nothing', async () => {
  const api = await startLimited({ ofCaller: MIB, inAll: 2 * MIB });
  for (let asked = 0; asked < 5; asked += 1) expect((await get(api, eve, 'schedules?limit=500')).status).toBe(200);
  const together = await Promise.all(Array.from({ length: 10 }, () => get(api, eve, 'schedules?limit=500')));
  for (const { status, text } of together) expect([status, text.length > MIB]).toEqual([status, status === 200]);
  expect((await get(api, eve, 'schedules?limit=500')).status).toBe(200);
});
