import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

const items = (answer: Answer) =>
  answer.body['items'] as unknown as { fireAt: string; local: string; dueAt?: string }[];
const preview = (body: unknown) => api.call('POST', '/api/v1/preview', body);

describe('upcoming', () => {
  const upcoming = (query: string) => api.call('GET', `/api/v1/schedules/daily/upcoming?${query}`);
  beforeAll(() =>
    api.call('PUT', '/api/v1/schedules/daily', {
      ...SCHEDULE,
      cron: '30 2 * * *',
      timezone: 'Europe/Berlin',
      enabled: false,
    }),
  );

  test('lists fires strictly after from, also of a paused schedule, with their local time', async () => {
    const answer = await upcoming('from=2026-07-01T00:30:00Z&count=2');
    expect(answer.body).toEqual({
      warnings: [],
      items: [
        { fireAt: '2026-07-02T00:30:00.000Z', local: '2026-07-02T02:30:00.000+02:00' },
        { fireAt: '2026-07-03T00:30:00.000Z', local: '2026-07-03T02:30:00.000+02:00' },
      ],
    });
  });

  test('lists ten from now on by default', async () => {
    const now = async () => Number((await api.sql`SELECT clock_timestamp() AS now`)[0]?.['now']);
    const before = await now();
    const answer = await upcoming('');
    expect(items(answer)).toHaveLength(10);
    const first = Date.parse(items(answer)[0]?.fireAt ?? '');
    expect(first).toBeGreaterThan(before);
    expect(first).toBeLessThanOrEqual((await now()) + 86_400_000);
  });

  test('lists a thousand, and nothing after 2100', async () => {
    const fires = items(await upcoming('count=1000&from=2026-01-01T00:00:00Z'));
    expect(new Set(fires.map(({ fireAt }) => fireAt)).size).toBe(1000);
    expect(items(await upcoming('count=1000&from=2099-12-30T00:00:00Z'))).toHaveLength(2);
  });

  test.each([
    ['count=0', ['count']],
    ['count=1001', ['count']],
    ['count=2.5', ['count']],
    ['from=tomorrow&count=x&to=1', ['count', 'from', 'to']],
  ])('refuses ?%s', async (query, paths) => {
    const answer = await upcoming(query);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('says what a change of the clocks does to a fire', async () => {
    const spring = await upcoming('from=2026-03-28T12:00:00Z&count=2');
    expect(spring.body).toEqual({
      warnings: [],
      items: [
        { fireAt: '2026-03-29T01:00:00.000Z', local: '2026-03-29T03:00:00.000+02:00', note: 'moved by DST' },
        { fireAt: '2026-03-30T00:30:00.000Z', local: '2026-03-30T02:30:00.000+02:00' },
      ],
    });
  });

  test('says when a fire is due if the schedule has jitter', async () => {
    const jitter = { ...SCHEDULE, cron: '*/10 * * * *', jitterSeconds: 300 };
    await api.call('PUT', '/api/v1/schedules/jittered', jitter);
    const fires = items(await api.call('GET', '/api/v1/schedules/jittered/upcoming?count=50'));
    const delays = fires.map(({ fireAt, dueAt = '' }) => Date.parse(dueAt) - Date.parse(fireAt));
    expect(delays.every((delay) => delay >= 0 && delay <= 300_000)).toBe(true);
    expect(new Set(delays).size).toBeGreaterThan(25);
    const { body } = await api.call('GET', '/api/v1/schedules/jittered');
    expect(fires[0]?.dueAt).toBe(body['nextFireAt']);
  });

  test('works for every kind, from startAt on and before endAt', async () => {
    const put = (id: string, timing: object) =>
      api.call('PUT', `/api/v1/schedules/${id}`, { target: SCHEDULE.target, ...timing });
    const fires = async (id: string) =>
      items(await api.call('GET', `/api/v1/schedules/${id}/upcoming`)).map(({ fireAt }) => fireAt);
    await put('window', {
      cron: '0 0 1 1 *',
      startAt: '2090-01-01T00:00:00Z',
      endAt: '2093-01-01T00:00:00Z',
    });
    expect(await fires('window')).toEqual([
      '2090-01-01T00:00:00.000Z',
      '2091-01-01T00:00:00.000Z',
      '2092-01-01T00:00:00.000Z',
    ]);
    await put('interval', {
      everySeconds: 100 * 86_400,
      startAt: '2090-01-01T00:00:00Z',
      endAt: '2090-07-20T00:00:00Z',
    });
    expect(await fires('interval')).toEqual(['2090-01-01T00:00:00.000Z', '2090-04-11T00:00:00.000Z']);
    await put('once', { at: '2090-05-05T05:05:05Z' });
    expect(await fires('once')).toEqual(['2090-05-05T05:05:05.000Z']);
  });

  test('is 404 for an unknown schedule, 409 for one that cannot be planned', async () => {
    expect((await api.call('GET', '/api/v1/schedules/nobody/upcoming')).status).toBe(404);
    await api.call('PUT', '/api/v1/schedules/broken', SCHEDULE);
    await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{cron}', '"soon"')
      WHERE schedule_id = 'broken'`;
    expect((await api.call('GET', '/api/v1/schedules/broken/upcoming')).status).toBe(409);
  });
});

describe('preview', () => {
  test('is a dry run', async () => {
    const answer = await preview({
      cron: '0 9 * * MON',
      timezone: 'Asia/Tokyo',
      from: '2026-11-20T10:00:00+01:00',
      count: 2,
      id: 'some-id',
    });
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        description: 'At 09:00, only on Monday',
        items: [
          { fireAt: '2026-11-23T00:00:00.000Z', local: '2026-11-23T09:00:00.000+09:00' },
          { fireAt: '2026-11-30T00:00:00.000Z', local: '2026-11-30T09:00:00.000+09:00' },
        ],
      },
    ]);
    expect(items(await preview({ cron: '* * * * *', timezone: null, from: null }))).toHaveLength(10);
  });

  test('says first what six fields are that were meant to end with a year', async () => {
    const { body } = await preview({ cron: '*/5 * * * * *', count: 1 });
    expect(Object.entries(body)[0]).toEqual(['description', 'Every 5 seconds']);
  });

  test('of an interval counts from its beginning', async () => {
    const answer = await preview({ everySeconds: 5400, from: '2026-11-20T10:00:00Z', count: 2 });
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        description: 'Every 90 minutes',
        items: [
          { fireAt: '2026-11-20T11:30:00.000Z', local: '2026-11-20T11:30:00.000Z' },
          { fireAt: '2026-11-20T13:00:00.000Z', local: '2026-11-20T13:00:00.000Z' },
        ],
      },
    ]);
  });

  test('chooses values for H and ? as it does for the schedule of that id', async () => {
    await api.call('PUT', '/api/v1/schedules/picked', { ...SCHEDULE, cron: 'H H * * *' });
    const from = '2026-11-20T00:00:00Z';
    const stored = await api.call('GET', `/api/v1/schedules/picked/upcoming?count=2&from=${from}`);
    const asked = async (id?: string) => items(await preview({ cron: 'H H * * *', from, count: 2, id }));
    expect(await asked('picked')).toEqual(items(stored));
    const others = await Promise.all(['a', 'b', 'c', undefined].map(asked));
    expect(new Set(others.map(([first]) => first?.fireAt)).size).toBeGreaterThan(1);
  });

  test('names the fault of an expression, and its place', async () => {
    const answer = await preview({ cron: '5/15 * * * *' });
    expect([answer.status, faultPaths(answer)]).toEqual([400, ['/cron']]);
    expect(answer.text).toContain('5-59/15');
  });

  test('is empty if no fire is left in the years to come', async () => {
    const answer = await preview({ cron: '0 0 1 1 *', from: '2099-12-31T00:00:00Z' });
    expect(items(answer).map(({ fireAt }) => fireAt)).toEqual(['2100-01-01T00:00:00.000Z']);
    expect(items(await preview({ cron: '0 0 2 1 *', from: '2099-12-31T00:00:00Z' }))).toEqual([]);
  });

  test('is 422 for an expression that never fires', async () => {
    const answer = await preview({ cron: '0 0 31 2 *' });
    expect([answer.status, faultPaths(answer)]).toEqual([422, ['/cron']]);
  });

  test.each<[unknown, string[]]>([
    [{}, ['/cron']],
    [{ cron: null, everySeconds: null }, ['/cron']],
    [{ cron: '* * * * *', everySeconds: 60 }, ['/cron', '/everySeconds']],
    [{ cron: 'x', everySeconds: 0, at: '2026-01-01T00:00:00Z' }, ['/at', '/cron', '/everySeconds']],
    [
      { cron: '* * * * *', timezone: 'X', from: 'y', count: 0, id: '/', to: 1 },
      ['/count', '/from', '/id', '/timezone', '/to'],
    ],
    [{ cron: '* * * * *', count: '5' }, ['/count']],
    [{ cron: 5 }, ['/cron']],
    [[], ['']],
  ])('refuses %j', async (body, paths) => {
    const answer = await preview(body);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });
});
