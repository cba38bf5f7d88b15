import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { type Api, SCHEDULE, faultPaths, startApi } from '../api.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let store: Store;
let api: Api;
let receiver: Receiver;
beforeAll(async () => {
  store = await createStore();
  receiver = await startReceiver();
  api = await startApi(store.url);
});
afterAll(async () => {
  await api.stop();
  await receiver.close();
  await store.drop();
});

const iso = (at: number) => new Date(at).toISOString();
const tomorrow = () => iso(Date.now() + 24 * HOUR);
const pathOf = (id: string) => `/api/v1/schedules/${id}`;
const get = async (id: string) => (await api.call('GET', pathOf(id))).body;
const put = (id: string, more: object) => api.call('PUT', pathOf(id), { ...SCHEDULE, ...more });
const patch = (id: string, more: object) => api.call('PATCH', pathOf(id), more);
interface Item {
  [field: string]: unknown;
  fireAt: string;
  state: string;
}
const itemsAt = async (path: string) => (await api.call('GET', path)).body['items'] as unknown as Item[];
const versions = async (id: string) =>
  (await itemsAt(`${pathOf(id)}/versions`)).map(({ version, at, by, change }) => ({
    version,
    at,
    by,
    change,
  }));

/**
 * A schedule that fires every minute and was paused 40 minutes ago, until 10 minutes ago, by people who have not been looked at since.
 * Answers the minute at which the pause ended.
 */
async function pausedUntilPast(id: string, more: object = {}): Promise<number> {
  const minute = Math.floor(Date.now() / MINUTE) * MINUTE;
  const target = { type: 'http', url: `${receiver.url}/${id}` };
  const timing = { cron: null, everySeconds: 60, startAt: iso(minute - 24 * HOUR), catchUp: 'all' };
  expect((await put(id, { ...timing, target, ...more })).status).toBe(201);
  expect((await patch(id, { enabled: false, pauseReason: 'works', pauseUntil: tomorrow() })).status).toBe(200);
  const end = minute - 10 * MINUTE;
  await api.sql`UPDATE schedule_versions SET at = ${iso(minute - HOUR)} WHERE schedule_id = ${id} AND version = 1`;
  await api.sql`UPDATE schedule_versions SET at = ${iso(minute - 40 * MINUTE)},
    definition = definition || jsonb_build_object('pauseUntil', ${end}::bigint) WHERE schedule_id = ${id} AND version = 2`;
  await api.sql`UPDATE schedules SET pause_until = ${iso(end)}, created_at = ${iso(minute - HOUR)},
    updated_at = ${iso(minute - 40 * MINUTE)}, next_occurrence_at = ${iso(minute - 39 * MINUTE)} WHERE id = ${id}`;
  return end;
}

describe('pauseUntil', () => {
  test('is answered, kept through other edits, and cleared with the reason by the edit that enables the schedule', async () => {
    const pauseUntil = tomorrow();
    const created = await put('kept', { enabled: false, pauseReason: 'moving', pauseUntil });
    expect(created.body).toMatchObject({ status: 'paused', pauseReason: 'moving', pauseUntil });
    expect((await patch('kept', { description: 'still' })).body).toMatchObject({ pauseUntil });
    const sentBack = await api.call('PUT', pathOf('kept'), await get('kept'));
    expect(sentBack.body).toMatchObject({ version: 2, pauseUntil });
    const enabled = await api.call('PUT', pathOf('kept'), { ...(await get('kept')), enabled: true });
    expect(enabled.body).toMatchObject({ status: 'active', pauseReason: null, pauseUntil: null });
    await patch('kept', { enabled: false, pauseReason: 'again', pauseUntil });
    expect((await patch('kept', { enabled: true })).body).toMatchObject({
      pauseReason: null,
      pauseUntil: null,
    });
    expect((await put('plain', {})).body).toMatchObject({ pauseUntil: null });
    const [newest] = await itemsAt(`${pathOf('kept')}/versions?limit=1`);
    expect(newest?.['schedule']).toMatchObject({ pauseUntil: null });
  });

  test('is refused beside enabled: true and in the past, each fault by its name, and nothing is stored', async () => {
    const past = iso(Date.now() - HOUR);
    for (const [body, faults] of [
      [{ pauseUntil: tomorrow() }, ['/pauseUntil']],
      [{ enabled: false, pauseUntil: past }, ['/pauseUntil']],
      [{ pauseUntil: past, endAt: past }, ['/endAt', '/pauseUntil', '/pauseUntil']],
    ] as const) {
      const answer = await put('refused', body);
      expect([answer.status, faultPaths(answer)]).toEqual([422, faults]);
    }
    const malformed = await put('refused', { enabled: false, pauseUntil: 'tomorrow' });
    expect([malformed.status, faultPaths(malformed)]).toEqual([400, ['/pauseUntil']]);
    expect((await api.call('GET', pathOf('refused'))).status).toBe(404);
    await put('active', {});
    expect((await patch('active', { pauseUntil: tomorrow() })).status).toBe(422);
    expect((await get('active'))['version']).toBe(1);
    const batch = await api.call('POST', '/api/v1/schedules/batch', {
      items: [
        { id: 'one', ...SCHEDULE, enabled: false, pauseUntil: tomorrow() },
        { id: 'two', ...SCHEDULE, enabled: false, pauseUntil: past },
      ],
    });
    expect([batch.status, faultPaths(batch)]).toEqual([422, ['/items/1/pauseUntil']]);
    expect((await api.call('GET', pathOf('one'))).status).toBe(404);
  });

  test('that has passed unnoticed is applied before an edit, which plans the fires that are due since', async () => {
    const end = await pausedUntilPast('edited');
    expect((await patch('edited', { description: 'late' })).body).toMatchObject({
      enabled: true,
      version: 4,
    });
    expect(await versions('edited')).toMatchObject([
      { version: 4, by: null },
      { version: 3, by: 'firelock', at: iso(end - 1) },
      { version: 2 },
      { version: 1 },
    ]);
    const runs = await itemsAt(`${pathOf('edited')}/runs?limit=100`);
    expect(runs.at(-1)).toMatchObject({ scheduledFor: iso(end), scheduleVersion: 3, trigger: 'catchUp' });
    const [{ at } = { at: '' }] = await versions('edited');
    expect(runs).toHaveLength(Math.floor((Date.parse(at as string) - end) / MINUTE) + 1);
    const other = await pausedUntilPast('deleted');
    expect((await api.call('DELETE', pathOf('deleted'))).status).toBe(204);
    const [first] = (await itemsAt(`${pathOf('deleted')}/runs?limit=100`)).reverse();
    expect(first).toMatchObject({ scheduledFor: iso(other), scheduleVersion: 3, status: 'abandoned' });
    expect((await versions('deleted')).map(({ change }) => change)).toEqual([
      'deleted',
      'updated',
      'updated',
      'created',
    ]);
  });
});

describe('a pause that ends by itself', () => {
  let instances: TestInstance[];
  beforeAll(async () => {
    instances = [await createInstance(store), await createInstance(store)];
  });
  afterAll(async () => {
    for (const instance of instances) await instance.stop();
  });
  const start = async () => {
    for (const instance of instances) {
      await instance.start();
      await instance.pipeline.resumer.start();
    }
  };

  test('ends once over two instances, as of its moment: fires due from then on are made, earlier ones were paused', async () => {
    const end = await pausedUntilPast('outage');
    await pausedUntilPast('parent');
    expect((await put('follower', { cron: null, after: { scheduleId: 'parent' } })).status).toBe(201);
    await patch('follower', { enabled: false, pauseUntil: tomorrow() });
    // Its pause is over, and no instance has ended it: followers of ends since then fire all the same.
    await api.sql`UPDATE schedules SET pause_until = ${iso(end)} WHERE id = 'follower'`;
    for (const broken of ['broken-1', 'broken-2']) {
      await pausedUntilPast(broken, { cron: '@hourly', everySeconds: null, startAt: null });
      await api.sql`UPDATE schedule_versions SET definition = definition || '{"cron": "never mind"}' WHERE schedule_id = ${broken}`;
    }
    await start();
    const all = `${pathOf('outage')}/occurrences?from=${iso(end - 29 * MINUTE)}&to=${iso(end + 11 * MINUTE)}&limit=100`;
    const states = await until(async () => {
      const found = (await itemsAt(all)).map(({ fireAt, state, version }) => ({ fireAt, state, version }));
      // A look may fall between the fires and what it reads of the versions.
      return found.some(({ state, version }) => state === 'fired' && version === 3) ? found : null;
    });
    const upTo = (minutes: number) => states.filter(({ fireAt }) => Date.parse(fireAt) < end + minutes * MINUTE);
    expect(upTo(0).map(({ state, version }) => [state, version])).toEqual(Array(29).fill(['paused', 2]));
    expect(states.slice(29, 40).map(({ state, version }) => [state, version])).toEqual(Array(11).fill(['fired', 3]));
    expect(await versions('outage')).toMatchObject([
      { version: 3, by: 'firelock', at: iso(end - 1), change: 'updated' },
      { version: 2 },
      { version: 1 },
    ]);
    expect(await get('outage')).toMatchObject({ status: 'active', pauseReason: null, pauseUntil: null });
    const followed = await until(async () => {
      const runs = await itemsAt(`${pathOf('follower')}/runs?limit=100`);
      return runs.length >= 11 ? runs : null;
    });
    expect(followed[0]).toMatchObject({ trigger: 'after', scheduleVersion: 2 });
  });

  test('and cannot be enabled does not stop the others, gives the reason, and can be mended', async () => {
    for (const broken of ['broken-1', 'broken-2']) {
      const found = await until(async () => {
        const one = (await get(broken)) as Record<string, unknown>;
        return one['error'] === null ? null : one;
      });
      expect(found).toMatchObject({
        status: 'paused',
        version: 2,
        error: expect.stringContaining('must have 5 fields') as string,
      });
    }
    const mended = await patch('broken-1', { cron: '0 12 29 2 *', enabled: true });
    expect(mended.body).toMatchObject({ status: 'active', error: null, pauseUntil: null, version: 3 });
    expect((await patch('broken-2', { cron: '0 12 29 2 *' })).status).toBe(200);
    const events = instances.flatMap((instance) => instance.events);
    expect(events.some((event) => event.type === 'pauseNotEnded')).toBe(true);
    expect(events.filter((event) => event.type === 'loopFailed')).toEqual([]);
  });

  test('shows the fires after it as upcoming, and those before it as paused', async () => {
    const hour = Math.ceil(Date.now() / HOUR + 1) * HOUR;
    await put('ahead', { cron: '@hourly', enabled: false, pauseUntil: iso(hour + HOUR) });
    const items = await itemsAt(`${pathOf('ahead')}/occurrences?from=${iso(hour)}&to=${iso(hour + 3 * HOUR)}`);
    expect(items.map(({ state }) => state)).toEqual(['paused', 'upcoming', 'upcoming']);
  });
});
