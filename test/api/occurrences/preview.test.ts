import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, faultPaths, sharedApi, TARGET } from '../api.ts';

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

describe('a month', () => {
  interface Day {
    date: string;
    verdict: string;
    fires: { fireAt: string; local: string; note?: string }[];
    [field: string]: unknown;
  }

  const preview = (body: object) => api.call('POST', '/api/v1/preview', { count: 1, ...body });
  const daysOf = ({ body }: Answer) => body['days'] as unknown as Day[] | undefined;
  const day = (answer: Answer, date: string) => daysOf(answer)?.find((one) => one.date === date);

  const LAST_WORKING_DAY = {
    ...{ cron: '0 9 * * *', timezone: 'Europe/Berlin', pick: { of: 'month', nth: [-1] } },
    exclude: { weekdays: ['sat', 'sun'], calendars: ['month-holidays'] },
  };
  const MOVING = {
    ...{ cron: '0 9 * * FRI', timezone: 'Europe/Berlin', onExcluded: 'next' },
    exclude: { weekdays: ['sat', 'sun'], calendars: ['month-holidays'] },
  };

  beforeAll(() =>
    // 25 December 2030 is a Wednesday, 31 December a Tuesday.
    api.call('PUT', '/api/v1/calendars/month-holidays', { dates: ['2030-12-25', '2030-12-31'] }),
  );

  test('a preview with rules of days explains each day of the local month of from, also those before it', async () => {
    const answer = await preview({ ...LAST_WORKING_DAY, from: '2030-12-15T12:00:00Z' });
    expect(answer.status).toBe(200);
    expect(daysOf(answer)).toHaveLength(31);
    expect(day(answer, '2030-12-02')).toEqual({ date: '2030-12-02', verdict: 'notPicked', fires: [] });
    expect(day(answer, '2030-12-30')).toEqual({
      ...{ date: '2030-12-30', verdict: 'fires' },
      fires: [{ fireAt: '2030-12-30T08:00:00.000Z', local: '2030-12-30T09:00:00.000+01:00' }],
    });
    expect(day(answer, '2030-12-31')).toEqual({
      ...{ date: '2030-12-31', verdict: 'excluded', reason: 'calendar month-holidays', fires: [] },
    });
  });

  test('it says where fires are moved to and from', async () => {
    const answer = await preview({
      ...{ ...MOVING, cron: '0 9 * * WED' },
      from: '2030-12-01T00:00:00Z',
    });
    expect(day(answer, '2030-12-25')).toMatchObject({
      ...{ verdict: 'moved', reason: 'calendar month-holidays', movedTo: '2030-12-26' },
    });
    expect(day(answer, '2030-12-26')).toMatchObject({
      ...{ verdict: 'fires', movedFrom: ['2030-12-25'] },
      fires: [{ note: 'moved from 2030-12-25 (calendar month-holidays)' }],
    });
  });

  test('the month is that of the first moment after from, as clocks in the zone of the schedule show it', async () => {
    const monthAt = async (from: string, timezone: string) => {
      const answer = await preview({ ...LAST_WORKING_DAY, timezone, from });
      return daysOf(answer)?.[0]?.date;
    };
    expect(await monthAt('2030-12-31T23:59:59.999Z', 'UTC')).toBe('2031-01-01');
    expect(await monthAt('2030-12-31T22:30:00Z', 'Europe/Berlin')).toBe('2030-12-01');
    expect(await monthAt('2030-12-31T23:30:00Z', 'Europe/Berlin')).toBe('2031-01-01');
  });

  test('a schedule without rules of days, and an interval that has no beginning yet, have no month', async () => {
    expect(daysOf(await preview({ cron: '0 9 * * MON-FRI' }))).toBeUndefined();
    const exclude = { weekdays: ['sun'] };
    expect(daysOf(await preview({ everySeconds: 3600, exclude }))).toBeUndefined();
  });

  test('of a day with many fires only the first are listed, and it says that there are more', async () => {
    const answer = await preview({
      cron: '* * * * * *',
      exclude: { weekdays: ['sun'] },
      from: '2030-12-01T00:00:00Z',
    });
    expect(day(answer, '2030-12-02')).toMatchObject({ verdict: 'fires', more: true, fires: { length: 8 } });
    expect(JSON.stringify(answer.body).length).toBeLessThan(40_000);
  });

  test('a stored schedule explains its month too, with its beginning and its end', async () => {
    const bounds = { startAt: '2030-12-04T00:00:00Z', endAt: '2030-12-20T00:00:00Z' };
    await api.call('PUT', '/api/v1/schedules/month-moving', { target: TARGET, ...MOVING, ...bounds });
    await api.call('PUT', '/api/v1/schedules/month-plain', { target: TARGET, cron: '0 9 * * *' });
    const upcoming = (id: string) =>
      api.call('GET', `/api/v1/schedules/${id}/upcoming?count=1&from=2030-12-15T12:00:00Z`);
    const answer = await upcoming('month-moving');
    const verdicts = ['06', '07', '09', '27'].map((date) => day(answer, `2030-12-${date}`)?.verdict);
    expect(verdicts).toEqual(['fires', 'notSelected', 'notSelected', 'outside']);
    const interval = { everySeconds: 86_400, exclude: { weekdays: ['sun'] }, startAt: bounds.startAt };
    await api.call('PUT', '/api/v1/schedules/month-interval', { target: TARGET, ...interval });
    const ofInterval = await upcoming('month-interval');
    expect(['03', '04', '08'].map((date) => day(ofInterval, `2030-12-${date}`)?.verdict)).toEqual([
      ...['notSelected', 'fires', 'excluded'],
    ]);
    expect(daysOf(await upcoming('month-plain'))).toBeUndefined();
  });

  test('a month before a calendar was edited is judged by what it said then', async () => {
    await api.call('PUT', '/api/v1/calendars/month-edited', { dates: ['2025-12-24'] });
    await api.call('PUT', '/api/v1/calendars/month-edited', { dates: ['2025-12-23'] });
    await api.sql`UPDATE calendar_versions SET at = timestamptz '2025-12-30' - (2 - version) * interval '1 year'
    WHERE calendar_id = 'month-edited'`;
    const exclude = { calendars: ['month-edited'] };
    const answer = await preview({ cron: '0 9 * * *', exclude, from: '2025-12-31T12:00:00Z' });
    expect(day(answer, '2025-12-24')?.verdict).toBe('excluded');
    expect(day(answer, '2025-12-23')?.verdict).toBe('fires');
  });
});
