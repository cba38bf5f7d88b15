import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAlertWatch } from '../../../src/recovery/alert-watch.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import type { Loop } from '../../../src/runtime/loop/loop.ts';
import { sampleWork } from '../../../src/store/reports/gauges.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';
import { type Api, SCHEDULE, startApi } from '../api.ts';

let store: Store;
let api: Api;
let instance: TestInstance;
let watch: Loop;
const events = createEventBus();
beforeAll(async () => {
  store = await createStore();
  api = await startApi(store.url);
  instance = await createInstance(store);
  const { lease, pipeline } = instance;
  await pipeline.alertWatch.stop();
  const deps = { database: store.database, clock: systemClock, events, lease, wake: pipeline.wake };
  watch = createAlertWatch({ ...deps, retentionDays: 30, publicUrl: null });
  await watch.start();
});
afterAll(async () => {
  await watch.stop();
  await instance.stop();
  await api.stop();
  await store.drop();
});

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const call = async (method: string, path: string, body?: object) =>
  (await api.call(method, `/api/v1/${path}`, body)).body as Record<string, unknown>;

/** As a call of the same instance, after which its watch looks at once. */
async function putCalendar(id: string, validUntil: string | null): Promise<void> {
  const { version } = await call('PUT', `calendars/${id}`, { dates: ['2030-12-25'], validUntil });
  events.emit({ type: 'namedWritten', noun: 'calendar', id, change: 'updated', version: Number(version) });
}

const warnings = async () => (await call('GET', 'schedules/works/upcoming'))['warnings'];
const alerts = async (query = '') =>
  (await call('GET', `alerts?scheduleId=works${query}`))['items'] as { kind: string; until: string | null }[];
const ending = async () =>
  (await store.database.run((db) => sampleWork(db, { overdueSeconds: 60 }))).values.calendarsEnding;

test('from 90 days before the end of a calendar on, who uses it is told, until the end is moved on', async () => {
  await putCalendar('holidays', inDays(92));
  await putCalendar('unused', inDays(-1));
  const exclude = { calendars: ['holidays'] };
  await call('PUT', 'schedules/works', { ...SCHEDULE, exclude });
  await call('PUT', 'schedules/paused', { ...SCHEDULE, exclude, enabled: false });
  const channel = { type: 'webhook', target: { type: 'http', url: 'http://127.0.0.1:9/' } };
  await call('PUT', 'notifiers/chat', { on: ['calendar'], channel });
  expect([await warnings(), await ending()]).toEqual([[], 0]);

  const validUntil = inDays(89);
  await putCalendar('holidays', validUntil);
  expect(await warnings()).toEqual([{ kind: 'calendar', calendar: 'holidays', validUntil }]);
  expect(await ending()).toBe(1);
  const [alert] = await until(async () => ((await alerts('&open=true')).length === 1 ? alerts() : null));
  const error = `the calendar holidays says nothing of days after ${validUntil}`;
  expect(alert).toMatchObject({ kind: 'calendar', until: null, error });
  expect((await call('GET', 'alerts?scheduleId=paused'))['items']).toEqual([]);
  expect((await call('GET', 'runs?trigger=notify'))['items']).toMatchObject([{ notifierId: 'chat' }]);

  await putCalendar('holidays', inDays(400));
  await until(async () => ((await alerts('&open=true')).length === 0 ? true : null));
  expect(await alerts()).toMatchObject([{ kind: 'calendar', until: expect.any(String) as string }]);
  expect([await warnings(), await ending()]).toEqual([[], 0]);
});
