// @module-tag attack
import { expect, test } from 'vitest';
import { createRefusals } from '../../../src/api/audit/entries.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import type { RefusedCall } from '../../../src/store/audit/audit-rows.ts';
import { until } from '../../support/until.ts';
import { newToken, settableClock } from '../access/support.ts';
import { type Json, SCHEDULE, sharedApi } from '../api.ts';

const viewer = newToken('reader', 'viewer');
const worker = newToken('worker-1', 'worker');
const admin = newToken('boss', 'admin');
const api = sharedApi({ apiTokens: [viewer.known, worker.known, admin.known] });

const entries = async (by: string) =>
  (await api.call('GET', `/api/v1/audit?by=${by}&limit=500`, undefined, admin.headers)).body[
    'items'
  ] as unknown as Json[];

test('every call that a role does not allow has an entry, under the name of its token', async () => {
  const refused = async (method: string, path: string) => {
    const answer = await api.call(method, `/api/v1${path}`, undefined, viewer.headers);
    expect(answer.status).toBe(403);
  };
  await refused('PUT', '/schedules/mine');
  await refused('POST', '/runs/019b76da-a800-7000-8000-000000000000/cancel');
  await refused('GET', '/audit');
  // Nothing of what was sent as an id is kept unless it can be one.
  await refused('DELETE', `/schedules/${'x'.repeat(5_000)}`);
  await refused('DELETE', '/limits/%00%0a');
  const found = await until(async () => {
    const all = await entries('reader');
    const byCall = (entry: Json) => JSON.stringify(entry['detail']);
    return all.length === 5 ? all.sort((a, b) => byCall(a).localeCompare(byCall(b))) : null;
  });
  const of = { by: 'reader', role: 'viewer', outcome: 'refused', scheduleId: null, subject: null };
  const [limit, long, audit, cancel, put] = found;
  expect(put).toMatchObject({
    ...{ ...of, action: 'schedule.update', subject: 'mine', scheduleId: 'mine' },
    detail: { call: 'PUT /api/v1/schedules/:id', needs: 'admin' },
  });
  expect(cancel).toMatchObject({
    ...{ ...of, action: 'run.cancel', subject: '019b76da-a800-7000-8000-000000000000' },
    detail: { call: 'POST /api/v1/runs/:id/cancel', needs: 'operator' },
  });
  expect(audit).toMatchObject({
    ...{ ...of, action: null, detail: { call: 'GET /api/v1/audit', needs: 'operator' } },
  });
  expect(long).toMatchObject({ ...of, action: 'schedule.delete' });
  expect(limit).toMatchObject({ ...of, action: 'limit.delete' });
});

test('so has one that the rules for browsers refuse, before anybody is asked who calls', async () => {
  const before = (await entries('reader')).length;
  const foreign = { 'sec-fetch-site': 'cross-site' };
  const answer = await api.call('PUT', '/api/v1/schedules/theirs', SCHEDULE, {
    ...viewer.headers,
    ...foreign,
  });
  expect(answer.status).toBe(403);
  expect((await api.call('PUT', '/api/v1/schedules/theirs', SCHEDULE, foreign)).status).toBe(403);
  const found = await until(async () => {
    const all = await entries('reader');
    return all.length > before ? all : null;
  });
  expect(found).toHaveLength(before + 1);
  expect(found.find((entry) => (entry['subject'] as unknown) === 'theirs')).toMatchObject({
    ...{ by: 'reader', outcome: 'refused', action: 'schedule.update' },
    detail: { call: 'PUT /api/v1/schedules/:id', needs: 'a page of this site' },
  });
});

test('a call without a valid token has no entry: its caller is unknown', async () => {
  const count = async () => (await api.sql`SELECT FROM audit`).length;
  const before = await count();
  expect((await api.call('PUT', '/api/v1/schedules/mine', SCHEDULE)).status).toBe(401);
  expect(await count()).toBe(before);
});

const call = (name: string, n: number): RefusedCall => ({
  caller: { name, role: 'viewer', scope: null },
  ...{ action: 'schedule.update', subject: `s-${n}`, scheduleId: `s-${n}`, name: null, detail: { n } },
});

test('a flood of refused calls makes ten entries a minute for each caller, and one for all the rest', async () => {
  const clock = settableClock();
  const store = openDatabase(api.databaseUrl, 2);
  const logger = { debug: () => undefined };
  const refusals = createRefusals({ database: store, clock, logger });
  for (let n = 0; n < 2_000; n += 1) refusals.note(call('flood', n));
  refusals.note(call('other', 0));
  clock.forward(60_000);
  // The minute is over: what came in it is counted, and a new one begins.
  refusals.note(call('flood', 2_000));
  await refusals.close();
  const flood = await entries('flood');
  expect(flood.map(({ subject, detail }) => subject ?? detail).sort()).toEqual(
    [...Array.from({ length: 10 }, (_, n) => `s-${n}`), 's-2000', { moreCalls: 1_990 }].sort() as unknown as Json[],
  );
  expect(await entries('other')).toHaveLength(1);
  await store.close();
});

test('while the database is away, refused calls are answered as usual, and few entries are kept', async () => {
  const failed: number[] = [];
  const away = {
    run: () => {
      failed.push(1);
      return Promise.reject(new Error('away'));
    },
    transaction: () => Promise.reject(new Error('away')),
    close: () => Promise.resolve(),
  };
  const logged: object[] = [];
  const logger = { debug: (fields: object) => void logged.push(fields) };
  const refusals = createRefusals({ database: away, clock: settableClock(), logger: logger as never });
  for (let n = 0; n < 500; n += 1) for (let i = 0; i < 20; i += 1) refusals.note(call(`c-${n}`, i));
  await refusals.close();
  expect(failed.length).toBeLessThanOrEqual(20);
  expect(logged).toContainEqual(expect.objectContaining({ lost: 100 }));
});
