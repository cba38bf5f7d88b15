import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import type { Executor } from '../../src/postgres/executor.ts';
import type { PageRoom } from '../../src/postgres/sql/lists.ts';
import { CALENDAR_ROWS } from '../../src/store/calendars/calendar-rows.ts';
import { CONNECTION_ROWS } from '../../src/store/connections/find-connections.ts';
import { listNamed } from '../../src/store/names/named-rows.ts';
import { NOTIFIER_ROWS } from '../../src/store/notifiers/rows.ts';
import { listRuns } from '../../src/store/runs/search/find-runs.ts';
import { lookThrough } from '../../src/store/schedules/search/matching-schedules.ts';
import { listVersions } from '../../src/store/schedules/schedule-versions.ts';
import { type Api, SCHEDULE, startApi, TARGET } from '../api/api.ts';
import { createMigrated, type TestDatabase } from '../support/postgres/cluster.ts';

let own: TestDatabase;
let database: Database;
let api: Api;
const COUNT = 8;
/** Of one row of each list: it compresses to nearly nothing, and counts in full. */
const BYTES = 4000;
const large = 'x'.repeat(BYTES);

beforeAll(async () => {
  own = await createMigrated();
  api = await startApi(own.url);
  database = openDatabase(own.url, 1);
  const dates = Array.from({ length: 200 }, (_, day) => {
    const date = new Date(Date.UTC(2030, 0, 1 + 2 * day)).toISOString().slice(0, 10);
    return `${date}/${date}`;
  });
  const body = { template: large, contentType: 'text/plain' };
  const channel = { type: 'webhook', target: { ...TARGET, body } };
  for (let index = 0; index < COUNT; index += 1) {
    const id = `${index < COUNT / 2 ? 'a' : 'b'}.${index}`;
    const put = async (path: string, content: unknown) =>
      expect((await api.call('PUT', `/api/v1/${path}`, content)).status).toBeLessThan(300);
    await put(`schedules/${id}`, { ...SCHEDULE, description: 'some', labels: { a: 'b' }, payload: large });
    await put('schedules/a.0', { ...SCHEDULE, description: `${index}`, labels: { a: 'b' }, payload: large });
    await api.call('POST', `/api/v1/schedules/${id}/fire`, {});
    await put(`calendars/${id}`, { dates });
    await put(`connections/${id}`, { url: 'https://api.example', headers: { x: large } });
    await put(`notifiers/${id}`, { on: ['failed'], filter: { ids: ['a.*'] }, channel });
  }
});
afterAll(async () => {
  await api.stop();
  await database.close();
  await own.drop();
});

type Read = (db: Executor, limits: { limit: number; room: PageRoom }) => Promise<readonly unknown[]>;
const scopes = [null, ['a.', 'b.']];

test.each<[what: string, read: Read]>([
  ...scopes.flatMap((scope): [string, Read][] => [
    ['runs', (db, page) => listRuns(db, { scope, ...page })],
    ['runs by label', (db, page) => listRuns(db, { scope, labels: [['a', 'b']], ...page })],
    ['schedules', async (db, page) => (await lookThrough(db, { scope, ...page })).schedules],
    ['schedules by text', async (db, page) => (await lookThrough(db, { scope, text: 'some', ...page })).schedules],
    ['calendars', (db, page) => listNamed(db, CALENDAR_ROWS, { scope, ...page })],
    ['connections', (db, page) => listNamed(db, CONNECTION_ROWS, { scope, ...page })],
    ['notifiers', (db, page) => listNamed(db, NOTIFIER_ROWS, { scope, ...page })],
  ]),
  ['versions', (db, page) => listVersions(db, 'a.0', { before: undefined, ...page })],
])('of %s no more is read than a page has room for, and one that is begun', async (_what, read) => {
  const room = { bytes: 1.5 * BYTES };
  const found = await database.run((db) => read(db, { limit: 500, room }));
  expect([found.length, room.bytes < 0]).toEqual([2, true]);
  const all = { bytes: 1_000_000 };
  expect((await database.run((db) => read(db, { limit: 500, room: all }))).length).toBeGreaterThanOrEqual(COUNT - 1);
  expect((await database.run((db) => read(db, { limit: 500, room: { bytes: 0 } }))).length).toBe(0);
});
