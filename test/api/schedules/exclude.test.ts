import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
beforeAll(async () => {
  await api.call('PUT', '/api/v1/calendars/may', { dates: ['2031-05-01', '2031-05-29'] });
});

const put = (id: string, body: object) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const patch = (id: string, body: object) => api.call('PATCH', `/api/v1/schedules/${id}`, body);
const preview = (body: object) =>
  api.call('POST', '/api/v1/preview', { from: '2031-04-29T00:00:00Z', ...body });
const firesOf = (answer: Answer) =>
  (answer.body['items'] as unknown as { fireAt: string }[]).map(({ fireAt }) => fireAt.slice(0, 16));
const errors = (answer: Answer) => [answer.status, answer.body['errors']];

const DAILY = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: '2031-04-30T00:00:00Z' };
const MAY = { dates: ['2031-05-02/2031-05-04'], calendars: ['may'], weekdays: [] };

describe('exclude', () => {
  test('is answered as it was sent, merged by a patch, and null where it excludes nothing', async () => {
    const made = await put('kept', { ...DAILY, exclude: MAY });
    expect([made.status, made.body['exclude']]).toEqual([201, MAY]);
    expect((await put('kept', made.body)).body['version']).toBe(1);
    const merged = await patch('kept', { exclude: { dates: ['2031-05-10'] } });
    expect(merged.body['exclude']).toEqual({ ...MAY, dates: ['2031-05-10'] });
    const emptied = await patch('kept', { exclude: { dates: null, calendars: [] } });
    expect(emptied.body['exclude']).toBeNull();
    expect((await put('empty', { ...DAILY, exclude: {} })).body['exclude']).toBeNull();
    expect((await patch('kept', { exclude: { calendars: ['may'] } })).body['exclude']).toEqual({
      ...{ dates: [], calendars: ['may'], weekdays: [] },
    });
    const versions = await api.call('GET', '/api/v1/schedules/kept/versions');
    expect(versions.body['items']).toMatchObject([
      { schedule: { exclude: { dates: [], calendars: ['may'] } } },
      { schedule: { exclude: null } },
      { schedule: { exclude: { dates: ['2031-05-10'] } } },
      { schedule: { exclude: MAY } },
    ]);
  });

  test('keeps every kind that has fire times from firing on these days of its zone', async () => {
    const cron = await put('cron', { ...DAILY, exclude: MAY });
    expect(cron.body['nextFireAt']).toBe('2031-04-30T07:00:00.000Z');
    const upcoming = await api.call('GET', '/api/v1/schedules/cron/upcoming?count=3');
    expect(firesOf(upcoming)).toEqual(['2031-04-30T07:00', '2031-05-05T07:00', '2031-05-06T07:00']);
    const interval = { everySeconds: 43_200, startAt: '2031-04-30T23:00:00Z', timezone: 'Europe/Berlin' };
    // One in the morning, and in the afternoon, of Berlin.
    const every = await put('every', { ...interval, exclude: { dates: ['2031-05-01'] } });
    expect(every.body['nextFireAt']).toBe('2031-05-01T23:00:00.000Z');
    expect((await patch('every', { timezone: null })).body['nextFireAt']).toBe('2031-04-30T23:00:00.000Z');
    const once = { at: '2031-04-30T23:00:00Z', exclude: { calendars: ['may'] } };
    expect((await put('once', once)).status).toBe(201);
    expect(errors(await put('once', { ...once, timezone: 'Europe/Berlin' }))).toEqual([
      422,
      [{ path: '/exclude', message: 'excludes its only fire, by may' }],
    ]);
  });

  test('appears in occurrences, in the load, and in a preview', async () => {
    await put('seen', { ...DAILY, exclude: MAY });
    const period = 'from=2031-04-30T00:00:00Z&to=2031-05-06T00:00:00Z';
    const occurrences = await api.call('GET', `/api/v1/schedules/seen/occurrences?${period}`);
    const items = occurrences.body['items'] as unknown as { state: string; reason?: string }[];
    expect(items.map(({ state, reason }) => [state, reason])).toEqual([
      ['upcoming', undefined],
      ['excluded', 'may'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['excluded', '2031-05-02/2031-05-04'],
      ['upcoming', undefined],
    ]);
    const minute = 'from=2031-05-01T07:00:00Z&to=2031-05-01T07:01:00Z';
    const load = async (when: string) => (await api.call('GET', `/api/v1/load?${when}`)).body['items'];
    const [onHoliday, before] = [await load(minute), await load(minute.replaceAll('05-01', '04-30'))];
    await patch('seen', { exclude: null });
    expect(JSON.stringify(await load(minute))).not.toBe(JSON.stringify(onHoliday));
    expect(JSON.stringify(await load(minute.replaceAll('05-01', '04-30')))).toBe(JSON.stringify(before));
    const { cron, timezone } = DAILY;
    const seen = await preview({ cron, timezone, exclude: MAY, count: 3 });
    expect(firesOf(seen)).toEqual(['2031-04-29T07:00', '2031-04-30T07:00', '2031-05-05T07:00']);
  });

  test('is not backfilled', async () => {
    await put('past', { cron: '0 12 * * *', exclude: { dates: ['2026-01-02/2026-01-03'] } });
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-05T00:00:00Z' };
    const answer = await api.call('POST', '/api/v1/schedules/past/backfill', period);
    expect(answer.body).toEqual({ created: 2, existing: 0, remainingFrom: null });
    const runs = await api.call('GET', '/api/v1/schedules/past/runs');
    expect(runs.body['items']).toMatchObject([
      { scheduledFor: '2026-01-04T12:00:00.000Z' },
      { scheduledFor: '2026-01-01T12:00:00.000Z' },
    ]);
  });

  test('is refused with every fault at once', async () => {
    const dates = ['2031-02-29', '2031-05-02/2031-05-01', 'x', '2031-05-01/2031-05-01'];
    const wrong = { dates, calendars: ['a b', 7], days: [] };
    const answer = await put('wrong', { ...DAILY, exclude: wrong, overlap: 'never' });
    expect(answer.status).toBe(400);
    const paths = ['/exclude/calendars/0', '/exclude/calendars/1', '/exclude/dates/0', '/exclude/dates/1'];
    expect(faultPaths(answer)).toEqual([...paths, '/exclude/dates/2', '/exclude/days', '/overlap']);
    const patched = await patch('kept', { exclude: { dates: ['x'] }, labels: 5 });
    expect(faultPaths(patched)).toEqual(['/exclude/dates/0', '/labels']);
    const many = Array.from({ length: 17 }, (_, index) => `c${index}`);
    expect(faultPaths(await put('wrong', { ...DAILY, exclude: { calendars: many } }))).toEqual([
      '/exclude/calendars',
    ]);
    expect(faultPaths(await put('wrong', { ...DAILY, exclude: { calendars: ['may', 'may'] } }))).toEqual([
      '/exclude/calendars',
    ]);
    const after = await put('wrong', { after: { scheduleId: '*' }, exclude: { dates: ['2031-05-01'] } });
    expect(errors(after)).toEqual([
      400,
      [
        {
          path: '/exclude',
          message: 'cannot be combined with after: the schedule has no fire times of its own',
        },
      ],
    ]);
    expect((await put('follower', { after: { scheduleId: '*' }, exclude: null })).status).toBe(201);
  });

  test('is 422 with an unknown calendar, or if no fire is left', async () => {
    const exclude = { dates: [], calendars: ['may', 'june', 'july'] };
    const unknown = [
      { path: '/exclude/calendars/1', message: 'names a calendar that does not exist: june' },
      { path: '/exclude/calendars/2', message: 'names a calendar that does not exist: july' },
    ];
    expect(errors(await put('wrong', { ...DAILY, exclude }))).toEqual([422, unknown]);
    expect(errors(await patch('kept', { exclude }))).toEqual([422, unknown]);
    expect(errors(await preview({ cron: '0 9 * * *', exclude }))).toEqual([422, unknown]);
    const items = [
      { id: 'fine', target: TARGET, ...DAILY },
      { id: 'wrong', target: TARGET, ...DAILY, exclude },
    ];
    const batch = await api.call('POST', '/api/v1/schedules/batch', { items });
    const inItem = unknown.map(({ path, message }) => ({ path: `/items/1${path}`, message }));
    expect(errors(batch)).toEqual([422, inItem]);
    const nothing = [422, [{ path: '/exclude', message: 'excludes every fire' }]];
    const century = { dates: ['2026-01-01/2100-12-31'] };
    expect(errors(await put('wrong', { cron: '* * * * * *', exclude: century }))).toEqual(nothing);
    expect(errors(await put('wrong', { everySeconds: 1, exclude: century }))).toEqual(nothing);
    expect(errors(await preview({ cron: '* * * * * *', exclude: century }))).toEqual(nothing);
    const window = { startAt: '2031-05-01T00:00:00Z', endAt: '2031-05-02T00:00:00Z' };
    const inWindow = { cron: '0 9 * * *', ...window, exclude: { calendars: ['may'] } };
    expect(errors(await put('wrong', inWindow))).toEqual(nothing);
    expect(errors(await put('wrong', { cron: '0 0 31 2 *', exclude: century }))).toEqual([
      422,
      [{ path: '/cron', message: 'never fires' }],
    ]);
    expect((await api.call('GET', '/api/v1/schedules/wrong')).status).toBe(404);
  });

  test('takes 2,000 dates, also of several schedules at once', async () => {
    const first = Date.UTC(2031, 0, 1);
    const dates = Array.from({ length: 2000 }, (_, index) =>
      new Date(first + index * 2 * 86_400_000).toISOString().slice(0, 10),
    );
    const exclude = { dates, calendars: ['may'] };
    const made = await put('many', { ...DAILY, exclude });
    expect([made.status, made.body['nextFireAt']]).toEqual([201, '2031-04-30T07:00:00.000Z']);
    expect(faultPaths(await put('more', { ...DAILY, exclude: { dates: [...dates, '2031-01-01'] } }))).toEqual(
      ['/exclude/dates'],
    );
    const items = Array.from({ length: 3 }, (_, index) => ({
      id: `b${index}`,
      target: TARGET,
      ...DAILY,
      exclude,
    }));
    expect((await api.call('POST', '/api/v1/schedules/batch', { items })).body).toMatchObject({
      created: 3,
    });
  });
});
