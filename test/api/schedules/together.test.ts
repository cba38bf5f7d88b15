import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { releaseHeldRuns } from '../../../src/store/runs/runs-of-edits.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { type Api, SCHEDULE, TARGET, faultPaths, startApi } from '../api.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let store: Store;
let api: Api;
let receiver: Receiver;
let instance: TestInstance;
beforeAll(async () => {
  store = await createStore();
  receiver = await startReceiver((_, response) => {
    response.statusCode = 400;
    response.end('{}');
  });
  api = await startApi(store.url);
  instance = await createInstance(store, { tickIntervalMs: 20 });
  await instance.start();
  await instance.pipeline.resumer.start();
});
afterAll(async () => {
  expect(api.warnings).toEqual([]);
  await instance.stop();
  await api.stop();
  await receiver.close();
  await store.drop();
});

interface Item {
  [field: string]: unknown;
  id: string;
}
const iso = (at: number) => new Date(at).toISOString();
const pathOf = (id: string) => `/api/v1/schedules/${id}`;
const get = async (id: string) => (await api.call('GET', pathOf(id))).body as Record<string, unknown>;
const itemsAt = async (path: string) => (await api.call('GET', path)).body['items'] as unknown as Item[];
const runsOf = (id: string) => itemsAt(`${pathOf(id)}/runs?limit=100`);
const limitOf = async (id: string) => (await api.call('GET', `/api/v1/limits/${id}`)).body;
const here = (id: string) => ({ target: { type: 'http', url: `${receiver.url}/${id}` } });
const put = async (id: string, more: object) => {
  const answer = await api.call('PUT', pathOf(id), { ...SCHEDULE, ...here(id), ...more });
  expect(answer.status).toBe(201);
};
const patch = async (id: string, more: object) => expect((await api.call('PATCH', pathOf(id), more)).status).toBe(200);
const post = async (path: string, body?: object) => {
  const answer = await api.call('POST', `/api/v1/${path}`, body);
  expect([200, 202]).toContain(answer.status);
  return answer.body;
};
/** Every hour, the last time half an hour ago: however long a test takes, nothing else comes due in it. */
const halfAnHourAgo = Date.now() - HOUR / 2;
const HOURLY = { cron: undefined, everySeconds: 3600, startAt: iso(halfAnHourAgo - 4 * HOUR) };
const passes = (loop: 'tick', count: number) => {
  const seen = () => instance.events.filter((event) => event.type === 'loopPassed' && event.loop === loop).length;
  const wanted = seen() + count;
  return until(() => seen() >= wanted || null);
};

test('a fire that is skipped on request takes no place of its limit; opened again, it waits for one', async () => {
  for (const id of ['narrow', 'wide'])
    expect((await api.call('PUT', `/api/v1/limits/${id}`, { maxRunning: 1 })).status).toBe(201);
  await put('limited', { ...HOURLY, limit: 'narrow', graceSeconds: 3600 });
  // As if the fire half an hour ago were still to come when this was asked for.
  await api.sql`WITH due AS (UPDATE schedules SET next_fire_at = ${iso(halfAnHourAgo)}, has_skips = true,
      next_occurrence_at = ${iso(halfAnHourAgo)} WHERE id = 'limited' RETURNING uid, created_at)
    INSERT INTO skips (schedule_uid, fire_at, asked_at) SELECT uid, ${iso(halfAnHourAgo)}, created_at FROM due`;
  const skipped = await until(async () => (await runsOf('limited'))[0] ?? null);
  expect(skipped).toMatchObject({ scheduledFor: iso(halfAnHourAgo), status: 'skipped', reason: 'request' });
  expect(await limitOf('narrow')).toMatchObject({ running: 0, waiting: 0 });

  // The limit that its schedule has now counts, and a worker has the only place of that.
  await patch('limited', { limit: 'wide' });
  const target = { type: 'pull', queue: 'holder' };
  expect((await api.call('POST', '/api/v1/runs', { target, limit: 'wide' })).status).toBe(201);
  const claimed = await post('queues/holder/claim', { workerId: 'w', waitSeconds: 60 });
  const [holder] = claimed['items'] as unknown as Item[];
  await post(`runs/${skipped.id}/retry`);
  expect(await limitOf('wide')).toMatchObject({ running: 1, waiting: 1 });
  expect(await limitOf('narrow')).toMatchObject({ running: 0, waiting: 0 });
  await post(`runs/${holder?.id ?? ''}/complete`, { status: 'succeeded', workerId: 'w' });
  instance.pipeline.wake.admission();
  await until(async () => ((await runsOf('limited'))[0]?.['status'] === 'failed' ? true : null));
  expect(await limitOf('wide')).toMatchObject({ running: 0, waiting: 0 });
});

describe('a bulk pause that ends by itself during maintenance', () => {
  /** The last fire before the pause ends, and the first after it. */
  const [before, after] = [halfAnHourAgo - 2 * HOUR, halfAnHourAgo - HOUR];
  /** Schedules that a bulk call paused before the last three fires, until the middle between the first two of these. */
  async function pausedInMaintenance(...ids: string[]): Promise<void> {
    await post('maintenance', { on: true, dispatch: 'hold' });
    const labels = { team: ids[0] };
    for (const id of ids) await put(id, { ...HOURLY, labels, catchUp: 'all' });
    const until = iso(Date.now() + HOUR);
    const filter = { label: `team:${ids[0] ?? ''}` };
    expect(await post('schedules/bulk', { action: 'pause', filter, until, reason: 'works' })).toMatchObject({
      matched: ids.length,
      changed: ids.length,
    });
    const [end, began] = [(before + after) / 2, before - 10 * MINUTE];
    await api.sql`UPDATE schedule_versions SET at = ${iso(began - HOUR)} WHERE schedule_id = ANY (${ids}) AND version = 1`;
    await api.sql`UPDATE schedule_versions SET at = ${iso(began)},
      definition = definition || jsonb_build_object('pauseUntil', ${end}::bigint)
      WHERE schedule_id = ANY (${ids}) AND version = 2`;
    await api.sql`UPDATE schedules SET created_at = ${iso(began - HOUR)}, updated_at = ${iso(began)},
      pause_until = ${iso(end)}, next_occurrence_at = ${iso(before)} WHERE id = ANY (${ids})`;
  }
  const endMaintenance = () => post('maintenance', { on: false });

  test('is enabled as of its moment; fires due since are planned when both are over', async () => {
    await pausedInMaintenance('rested', 'rested-too');
    for (const id of ['rested', 'rested-too'])
      await until(async () => ((await get(id))['enabled'] === true ? true : null));
    await passes('tick', 2);
    expect(await runsOf('rested')).toEqual([]);
    await endMaintenance();
    for (const id of ['rested', 'rested-too']) {
      const runs = await until(async () => {
        const found = await runsOf(id);
        return found.length > 0 && found.every(({ status }) => status === 'failed') ? found : null;
      });
      expect(runs).toMatchObject(
        [halfAnHourAgo, after].map((at) => ({
          scheduledFor: iso(at),
          scheduleVersion: 3,
          trigger: 'catchUp',
        })),
      );
      const found = await itemsAt(`${pathOf(id)}/occurrences?from=${iso(before)}&to=${iso(Date.now())}`);
      expect(found.map(({ state }) => state)).toEqual(['paused', 'fired', 'fired']);
    }
  });

  test('ends before an edit that moves the fire times: fires due since are held until maintenance is over', async () => {
    await instance.pipeline.resumer.stop();
    await pausedInMaintenance('moved');
    await patch('moved', { everySeconds: 7 * 86_400 });
    expect(await get('moved')).toMatchObject({ enabled: true, version: 4, pauseUntil: null });
    const held = [halfAnHourAgo, after].map((at) => ({
      scheduledFor: iso(at),
      scheduleVersion: 3,
      status: 'waiting',
    }));
    expect(await runsOf('moved')).toMatchObject(held);
    // A bulk pause of what is held lets it be: it was recorded.
    await post('schedules/bulk', { action: 'pause', filter: { q: 'moved' } });
    await store.database.transaction((tx) => releaseHeldRuns(tx, 100));
    expect(await runsOf('moved')).toMatchObject(held);
    await endMaintenance();
    await store.database.transaction((tx) => releaseHeldRuns(tx, 100));
    instance.pipeline.wake.dispatch();
    await until(async () => ((await runsOf('moved')).every(({ status }) => status === 'failed') ? true : null));
    expect(await runsOf('moved')).toHaveLength(2);
  });
});

test('a run that fails again after a bulk retry counts once, and pauses its schedule with the others', async () => {
  await put('flaky', { pauseAfterFailures: 3 });
  const fire = () => post('schedules/flaky/fire');
  const failed = (count: number) =>
    until(async () => {
      const effects = await api.sql`SELECT FROM effects`;
      const runs = await runsOf('flaky');
      return effects.length === 0 && runs.length === count && runs.every(({ status }) => status === 'failed')
        ? true
        : null;
    });
  const retryAll = () => post('runs/bulk', { action: 'retry', filter: { scheduleId: 'flaky', status: ['failed'] } });
  await fire();
  await fire();
  await failed(2);
  expect(await retryAll()).toMatchObject({ matched: 2, changed: 2 });
  await until(() => receiver.arrivals.filter(({ body }) => body.scheduleId === 'flaky').length === 4 || null);
  await failed(2);
  expect(await get('flaky')).toMatchObject({ enabled: true, version: 1 });
  await fire();
  const paused = await until(async () => {
    const found = await get('flaky');
    return found['enabled'] === false ? found : null;
  });
  expect(paused).toMatchObject({
    version: 2,
    pauseReason: expect.stringMatching(/^3 runs in a row did not succeed/) as string,
  });
  // Enabled again, it counts anew: runs that are opened again and fail since then.
  await post('schedules/bulk', { action: 'resume', filter: { q: 'flaky' } });
  expect(await retryAll()).toMatchObject({ changed: 3 });
  await until(async () => ((await get('flaky'))['enabled'] === false ? true : null));
  await failed(3);
  expect(await get('flaky')).toMatchObject({ version: 4 });
});

test('a dry run of a batch names unknown limits and pauses that cannot end, each at its place, as the batch does', async () => {
  const items = [
    { ...SCHEDULE, id: 'dry-0', limit: 'nowhere' },
    { ...SCHEDULE, id: 'dry-1', limit: 'nor-here', pauseUntil: '2090-01-01T00:00:00Z' },
    { ...SCHEDULE, id: 'dry-2', enabled: false, pauseUntil: '2020-01-01T00:00:00Z' },
    { id: 'dry-3', target: TARGET, cron: ['0 9 * * *', '0 0 30 2 *'], limit: 'wide' },
    { id: 'dry-4', target: TARGET, after: { scheduleId: 'missing', on: ['late'] }, limit: 'nowhere' },
  ];
  for (const dryRun of [true, false]) {
    const answer = await api.call('POST', '/api/v1/schedules/batch', { items, dryRun });
    expect([answer.status, faultPaths(answer)]).toEqual([
      422,
      [
        '/items/0/limit',
        '/items/1/limit',
        '/items/1/pauseUntil',
        '/items/2/pauseUntil',
        '/items/3/cron/1',
        '/items/4/after/scheduleId',
        '/items/4/limit',
      ],
    ]);
  }
  expect(await itemsAt('/api/v1/schedules?q=dry-')).toEqual([]);
  const pauseUntil = '2090-01-01T00:00:00.000Z';
  const good = { ...SCHEDULE, id: 'dry-0', limit: 'wide', enabled: false, pauseUntil, pauseAfterFailures: 2 };
  const batch = (given: object, dryRun: boolean) => post('schedules/batch', { items: [given], dryRun });
  expect(await batch(good, true)).toMatchObject({
    created: 1,
    changes: [{ id: 'dry-0', change: 'created' }],
  });
  expect(await batch(good, false)).toEqual({ created: 1, updated: 0, unchanged: 0 });
  const { changes } = await batch({ ...good, enabled: true, pauseUntil: null, limit: null }, true);
  expect(changes).toEqual([
    {
      id: 'dry-0',
      change: 'updated',
      fields: [
        { path: '/enabled', before: false, after: true },
        { path: '/pauseUntil', before: pauseUntil, after: null },
        { path: '/limit', before: 'wide', after: null },
      ],
    },
  ]);
});

test('a PUT and a PATCH name all impossible values at once: times, calendars, the end of a pause, and the limit', async () => {
  const impossible = {
    cron: ['0 9 * * *', '0 0 30 2 *'],
    exclude: { calendars: ['none'] },
    limit: 'none',
    enabled: false,
    pauseUntil: '2020-01-01T00:00:00Z',
  };
  const paths = ['/cron/1', '/exclude/calendars/0', '/limit', '/pauseUntil'];
  const created = await api.call('PUT', pathOf('impossible'), { ...SCHEDULE, ...impossible });
  expect([created.status, faultPaths(created)]).toEqual([422, paths]);
  expect((await api.call('GET', pathOf('impossible'))).status).toBe(404);
  await put('possible', {});
  const patched = await api.call('PATCH', pathOf('possible'), impossible);
  expect([patched.status, faultPaths(patched)]).toEqual([422, paths]);
  expect(await get('possible')).toHaveProperty('version', 1);
});
