import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, type Api, SCHEDULE, faultPaths, startApi } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const items = (answer: Answer) => answer.body['items'] as unknown as { fireAt: string; local: string }[];
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

  test('tells fires strictly after from, also of a paused schedule, with their local time', async () => {
    const answer = await upcoming('from=2026-07-01T00:30:00Z&count=2');
    expect(answer.body).toEqual({
      items: [
        { fireAt: '2026-07-02T00:30:00.000Z', local: '2026-07-02T02:30:00.000+02:00' },
        { fireAt: '2026-07-03T00:30:00.000Z', local: '2026-07-03T02:30:00.000+02:00' },
      ],
    });
  });

  test('begins now and tells ten, where nothing else is said', async () => {
    const answer = await upcoming('');
    expect(items(answer)).toHaveLength(10);
    const [row] = await api.sql<{ now: string }[]>`SELECT clock_timestamp()::text AS now`;
    const first = Date.parse(items(answer)[0]?.fireAt ?? '');
    expect(first - Date.parse(row?.now ?? '')).toBeLessThanOrEqual(86_400_000);
    expect(first - Date.parse(row?.now ?? '')).toBeGreaterThan(-60_000);
  });

  test('tells a thousand, and nothing after 2100', async () => {
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
        items: [
          { fireAt: '2026-11-23T00:00:00.000Z', local: '2026-11-23T09:00:00.000+09:00' },
          { fireAt: '2026-11-30T00:00:00.000Z', local: '2026-11-30T09:00:00.000+09:00' },
        ],
      },
    ]);
    expect(items(await preview({ cron: '* * * * *', timezone: null, from: null }))).toHaveLength(10);
  });

  test('of what never fires is 422', async () => {
    const answer = await preview({ cron: '0 0 31 2 *' });
    expect([answer.status, faultPaths(answer)]).toEqual([422, ['/cron']]);
  });

  test.each<[unknown, string[]]>([
    [{}, ['/cron']],
    [{ everySeconds: 60 }, ['/cron', '/everySeconds']],
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
