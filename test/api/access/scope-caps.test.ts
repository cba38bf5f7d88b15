import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseScopeShares } from '../../../src/core/access/scope.ts';
import { createOpenRunCaps } from '../../../src/operations/scope-caps.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import type { Loop } from '../../../src/runtime/loop/loop.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';
import { type Api, SCHEDULE, TARGET, startApi } from '../api.ts';

/** At most 3 schedules and 4 open runs of names that begin with billing., and 2 schedules of those with billing.eu. */
const [SHARES] = parseScopeShares('billing.:3:4,billing.eu.:2:');
const MANY_SCHEDULES = 'names that begin with billing. may have at most 3 schedules (FIRELOCK_SCOPES)';
const MANY_RUNS = 'names that begin with billing. may have at most 4 open runs (FIRELOCK_SCOPES)';

let server: Awaited<ReturnType<typeof createMigratedDatabase>>;
let database: Database;
let api: Api;
let other: Api;
let counting: Loop;

beforeAll(async () => {
  server = await createMigratedDatabase();
  database = openDatabase(server.url, 2);
  const deps = { database, clock: systemClock, events: createEventBus(), scopeShares: SHARES };
  const { caps, loop } = createOpenRunCaps(deps);
  if (loop === null) throw new Error('there are caps, and nothing counts');
  counting = loop;
  await counting.start();
  api = await startApi(server.url, { scopeShares: SHARES, openRunCaps: caps });
  other = await startApi(server.url, { scopeShares: SHARES });
});

afterAll(async () => {
  await Promise.all([api.stop(), other.stop(), counting.stop()]);
  await database.close();
  await server.drop();
});

beforeEach(async () => {
  for (const table of ['schedules', 'runs', 'history', 'run_keys']) await api.sql.unsafe(`DELETE FROM ${table}`);
  await recount();
});

/** Looks at the open runs now, and not in some seconds. */
async function recount(): Promise<void> {
  await until(() => (counting.inPassMs() === 0 ? true : null));
  const before = counting.passes();
  counting.wake();
  await until(() => (counting.passes() > before && counting.inPassMs() === 0 ? true : null));
}

const put = (id: string, by = api) => by.call('PUT', `/api/v1/schedules/${id}`, SCHEDULE);

test('a scope has no more schedules than its cap, and others have as many as they want', async () => {
  for (const id of ['billing.1', 'billing.2', 'billing.eu.3', 'ops.1', 'ops.2'])
    expect((await put(id)).status).toBe(201);
  const answer = await put('billing.4');
  expect(answer).toMatchObject({ status: 422, body: { detail: MANY_SCHEDULES } });
  expect((await put('ops.3')).status).toBe(201);
  // What is there may be edited; and once one is gone, another may come.
  expect((await api.call('PATCH', '/api/v1/schedules/billing.1', { description: 'x' })).status).toBe(200);
  expect((await api.call('DELETE', '/api/v1/schedules/billing.1')).status).toBe(204);
  expect((await put('billing.4')).status).toBe(201);
});

test('a cap also holds for the names below another prefix, which counts for both', async () => {
  for (const id of ['billing.eu.1', 'billing.eu.2']) expect((await put(id)).status).toBe(201);
  expect(await put('billing.eu.3')).toMatchObject({
    ...{
      status: 422,
      body: { detail: 'names that begin with billing.eu. may have at most 2 schedules (FIRELOCK_SCOPES)' },
    },
  });
  expect((await put('billing.1')).status).toBe(201);
  expect(await put('billing.2')).toMatchObject({ status: 422, body: { detail: MANY_SCHEDULES } });
});

test('a batch that would make one schedule too many makes none, and a dry run says the same', async () => {
  await put('billing.1');
  const items = ['billing.2', 'ops.1', 'billing.3', 'billing.4'].map((id) => ({ id, ...SCHEDULE }));
  for (const dryRun of [true, false]) {
    const answer = await api.call('POST', '/api/v1/schedules/batch', { items, dryRun });
    expect(answer).toMatchObject({ status: 422, body: { detail: MANY_SCHEDULES } });
  }
  expect((await api.call('GET', '/api/v1/schedules')).body['items']).toHaveLength(1);
});

test('calls that come to several instances at once make no more than the cap', { tags: [ATTACK] }, async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `billing.${index}`);
  const answers = await Promise.all(ids.map((id, index) => put(id, index % 2 === 0 ? api : other)));
  expect(answers.map(({ status }) => status).sort()).toEqual([
    ...new Array<number>(3).fill(201),
    ...new Array<number>(17).fill(422),
  ]);
});

test('callers may ask for as many open runs as the cap says: by hand, at once, for the past, again', async () => {
  await put('billing.1');
  await put('ops.1');
  const fire = (id: string) => api.call('POST', `/api/v1/schedules/${id}/fire`, {});
  const submit = (keys: readonly string[]) =>
    api.call('POST', '/api/v1/runs/batch', {
      items: keys.map((key, index) => ({ ref: `r${index}`, key, target: TARGET })),
    });
  const refused = { status: 422, body: { detail: MANY_RUNS } };
  expect((await fire('billing.1')).status).toBe(202);
  const last = await fire('billing.1');
  expect(await submit(['billing.a', 'billing.b', 'billing.c', 'ops.a'])).toMatchObject(refused);
  expect((await submit(['billing.a', 'billing.b', 'ops.a'])).status).toBeLessThan(300);
  expect(await fire('billing.1')).toMatchObject(refused);
  expect(await submit(['billing.c'])).toMatchObject(refused);
  // A key that was used before makes no run, and others are not concerned.
  expect((await submit(['billing.a'])).status).toBeLessThan(300);
  expect((await fire('ops.1')).status).toBe(202);
  const past = { from: '2020-02-29T00:00:00Z', to: '2020-03-01T00:00:00Z' };
  expect(await api.call('POST', '/api/v1/schedules/billing.1/backfill', past)).toMatchObject(refused);

  const id = last.body['id'] as unknown as string;
  expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
  await recount();
  expect((await fire('billing.1')).status).toBe(202);
  expect(await api.call('POST', `/api/v1/runs/${id}/retry`)).toMatchObject(refused);
  const bulk = { action: 'retry', filter: { scheduleId: 'billing.1' }, limit: 10 };
  expect(await api.call('POST', '/api/v1/runs/bulk', bulk)).toMatchObject(refused);
});

test('of many runs, so many are retried as the cap allows, and the others remain', async () => {
  await put('billing.1');
  for (let n = 0; n < 4; n += 1) await api.call('POST', '/api/v1/schedules/billing.1/fire', {});
  const bulk = (action: string) =>
    api.call('POST', '/api/v1/runs/bulk', { action, filter: { scheduleId: 'billing.1' }, limit: 10 });
  expect((await bulk('cancel')).body).toMatchObject({ changed: 4 });
  await recount();
  await api.call('POST', '/api/v1/schedules/billing.1/fire', {});
  expect((await bulk('retry')).body).toMatchObject({ matched: 4, changed: 3, remaining: 1 });
});
