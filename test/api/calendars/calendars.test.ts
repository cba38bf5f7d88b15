import { describe, expect, test, afterAll, beforeAll } from 'vitest';
import { type Api, TARGET, sharedApi, SCHEDULE, startApi, detailOf } from '../api.ts';
import { createAlertWatch } from '../../../src/recovery/alert-watch.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import type { Loop } from '../../../src/runtime/loop/loop.ts';
import { sampleWork } from '../../../src/store/reports/gauges.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const api = sharedApi();

const at = (id: string) => `/api/v1/calendars/${id}`;
const put = (id: string, body: unknown, headers?: Record<string, string>) => api.call('PUT', at(id), body, headers);
const putSchedule = (id: string, body: object) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const nextFireOf = async (id: string) => (await api.call('GET', `/api/v1/schedules/${id}`)).body['nextFireAt'];

describe('a calendar', () => {
  test('says which of its days are wrong, and why, and has two thousand at most', async () => {
    const answer = await put('wrong', { dates: ['2030-02-30', '2030-01-02/2030-01-01'] });
    expect([answer.status, answer.body['errors']]).toEqual([
      400,
      [
        { path: '/dates/0', message: 'names a day that does not exist: 2030-02-30' },
        {
          path: '/dates/1',
          message: 'ends before it begins: 2030-01-01 is earlier than 2030-01-02',
        },
      ],
    ]);
    const most = Array.from({ length: 2000 }, () => '2030-01-01');
    expect((await put('wrong', { dates: most })).status).toBe(201);
  });

  test('moves the next fires of the schedules that exclude it, and is not deleted while there are some', async () => {
    await put('used', { dates: ['2031-05-01'] });
    const daily = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: '2031-05-01T00:00:00Z' };
    await putSchedule('user', { ...daily, exclude: { calendars: ['used'] } });
    expect(await nextFireOf('user')).toBe('2031-05-02T07:00:00.000Z');
    const further = await put('used', { dates: ['2031-05-01/2031-05-03'] });
    expect(further.body['nextFiresMoved']).toBe(true);
    expect(await nextFireOf('user')).toBe('2031-05-04T07:00:00.000Z');
    await put('used', { dates: ['2031-05-02'] });
    expect(await nextFireOf('user')).toBe('2031-05-01T07:00:00.000Z');
    expect(detailOf(await api.call('DELETE', at('used')))).toEqual([409, 'the calendar is named by schedules user']);
    const before = (await api.call('GET', '/api/v1/schedules/user')).body;
    await api.call('PATCH', '/api/v1/schedules/user', { exclude: null });
    expect((await api.call('DELETE', at('used'))).status).toBe(204);
    const gone = await api.call('PUT', '/api/v1/schedules/user', before);
    expect(gone.body['errors']).toEqual([
      { path: '/exclude/calendars/0', message: 'names a calendar that does not exist: used' },
    ]);
    expect(gone.status).toBe(422);
    // It has another uid, and the old one's links are gone.
    await put('used', { dates: [] });
    await putSchedule('second', { ...daily, exclude: { calendars: ['used'] } });
    expect((await api.call('DELETE', '/api/v1/schedules/second')).status).toBe(204);
    expect((await api.call('DELETE', at('used'))).status).toBe(204);
  });

  test('says nothing about the time before its last edit: earlier judgements stay', async () => {
    const made = await put('edited', { dates: ['2026-01-01/2029-12-31'] });
    const schedule = await putSchedule('judged', {
      everySeconds: 3600,
      startAt: '2026-01-01T00:00:00Z',
      exclude: { calendars: ['edited'] },
    });
    // As if both had been there for two days.
    await api.sql`UPDATE calendar_versions SET at = at - interval '2 days' WHERE calendar_id = 'edited'`;
    await api.sql`UPDATE schedule_versions SET at = at - interval '2 days' WHERE schedule_id = 'judged'`;
    const edit = await put('edited', { dates: [] });
    const created = Date.parse(made.body['updatedAt'] as unknown as string);
    const since = Date.parse(schedule.body['createdAt'] as unknown as string);
    const hour = (instant: number) => Math.floor(instant / 3_600_000);
    const edited = Date.parse(edit.body['updatedAt'] as unknown as string);
    const period = `from=${new Date(created - 3 * 86_400_000).toISOString()}&to=${new Date(edited + 86_400_000).toISOString()}`;
    const answer = await api.call('GET', `/api/v1/schedules/judged/occurrences?limit=500&${period}`);
    const items = answer.body['items'] as unknown as { fireAt: string; state: string; reason?: string }[];
    const states = items.map(({ fireAt, state, reason }) => [Date.parse(fireAt) <= edited, state, reason]);
    expect(new Set(states.map((one) => one.join(' ')))).toEqual(new Set(['true excluded edited', 'false upcoming ']));
    expect(states.filter(([isBefore]) => isBefore)).toHaveLength(hour(edited) - hour(since - 2 * 86_400_000));
  });
});

describe('a calendar that ends', () => {
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
    (await call('GET', `alerts?scheduleId=works${query}`))['items'] as {
      kind: string;
      until: string | null;
    }[];
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
});
