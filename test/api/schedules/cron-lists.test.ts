import { ATTACK } from '../../support/runner/attack.ts';
import { describe, expect, test, vi } from 'vitest';
import { Cron } from 'croner';
import { type Answer, TARGET, sharedApi } from '../api.ts';
import { DEFAULT_TIMING } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { lookAhead, outlookOf } from '../../../src/api/schedules/fire-faults.ts';

const api = sharedApi();

const put = (id: string, body: object) => api.call('PUT', `/api/v1/schedules/${id}`, { target: TARGET, ...body });
const get = (path: string) => api.call('GET', `/api/v1${path}`);
const preview = (body: object) => api.call('POST', '/api/v1/preview', body);
const faults = ({ status, body }: Answer) => ({ status, errors: body['errors'] });
const items = (answer: Answer) => answer.body['items'] as unknown as Record<string, unknown>[];
const moments = (answer: Answer) => items(answer).map(({ fireAt, at }) => fireAt ?? at);

const WEEK = ['0 9 * * MON-FRI', '0 11 * * SAT'];
const SIXTEEN = Array.from({ length: 16 }, (_, n) => `${n} ${n} 29 2 *`);

describe('a schedule with several expressions', () => {
  test('is answered as it was sent: a string as a string, a list as a list in its order', async () => {
    const created = await put('listed', { cron: WEEK, timezone: 'Europe/Berlin' });
    expect([created.status, created.body['cron']]).toEqual([201, WEEK]);
    expect((await get('/schedules/listed')).text).toBe(created.text);
    const again = await api.call('PUT', '/api/v1/schedules/listed', created.text);
    expect([again.status, again.text]).toEqual([200, created.text]);
    const turned = await api.call('PATCH', '/api/v1/schedules/listed', { cron: WEEK.toReversed() });
    expect(turned.body).toMatchObject({
      cron: WEEK.toReversed(),
      version: 2,
      nextFireAt: created.body['nextFireAt'],
    });
    const single = await api.call('PATCH', '/api/v1/schedules/listed', { cron: '@daily' });
    expect(single.body['cron']).toBe('@daily');
    const several = await api.call('PATCH', '/api/v1/schedules/listed', { cron: SIXTEEN });
    expect([several.status, several.body['cron']]).toEqual([200, SIXTEEN]);
    const paused = await api.call('PATCH', '/api/v1/schedules/listed', { enabled: false });
    expect([paused.status, paused.body['cron']]).toEqual([200, SIXTEEN]);
    const interval = await api.call('PATCH', '/api/v1/schedules/listed', { everySeconds: 60 });
    expect(interval.body).toMatchObject({ cron: null, everySeconds: 60 });
    const versions = items(await get('/schedules/listed/versions')).map(
      ({ schedule }) => (schedule as Record<string, unknown>)['cron'],
    );
    expect(versions).toEqual([null, SIXTEEN, SIXTEEN, '@daily', WEEK.toReversed(), WEEK]);
  });

  test('may stand in a batch', async () => {
    const batch = (cron: unknown, cron2: unknown) =>
      api.call('POST', '/api/v1/schedules/batch', {
        items: [
          { id: 'batch-1', cron, target: TARGET },
          { id: 'batch-2', cron: cron2, target: TARGET },
        ],
      });
    expect((await batch(WEEK, '@daily')).body).toMatchObject({ created: 2 });
    expect((await batch(WEEK, '@daily')).body).toMatchObject({ unchanged: 2 });
    expect(faults(await batch(['@daily', 'x'], ['@daily', '0 0 * * *']))).toMatchObject({
      status: 400,
      errors: [{ path: '/items/0/cron/1' }, { path: '/items/1/cron/1' }],
    });
    expect(faults(await batch(['@daily', '0 0 30 2 *'], ['0 0 31 4 *', '@daily', '0 0 31 2 *']))).toEqual({
      status: 422,
      errors: [
        { path: '/items/0/cron/1', message: 'never fires' },
        { path: '/items/1/cron/0', message: 'never fires' },
        { path: '/items/1/cron/2', message: 'never fires' },
      ],
    });
  });

  const COUNT = 'must be a list of 2 to 16 expressions, or one as a string';
  test.each([
    [['@daily'], [{ path: '/cron', message: COUNT }]],
    [[], [{ path: '/cron', message: COUNT }]],
    [[...SIXTEEN, '@daily'], [{ path: '/cron', message: COUNT }]],
    [Array.from({ length: 17 }, () => '* *'), [{ path: '/cron', message: COUNT }]],
    [5, [{ path: '/cron', message: 'must be a string, or a list of strings' }]],
    [{ 0: '@daily' }, [{ path: '/cron', message: 'must be a string, or a list of strings' }]],
    [
      ['@daily', 5, null, '0 25 * * *', '@daily'],
      [
        { path: '/cron/1', message: 'must be a string' },
        { path: '/cron/2', message: 'must be a string' },
        { path: '/cron/3', message: expect.stringMatching(/^hour, column 3/) as string },
        { path: '/cron/4', message: 'is the same expression as that at index 0' },
      ],
    ],
    [
      ['0 9 * * MON', '0 9 * * mon', ' 0  9 * * MON '],
      [
        { path: '/cron/1', message: 'is the same expression as that at index 0' },
        { path: '/cron/2', message: 'is the same expression as that at index 0' },
      ],
    ],
  ])('is refused with every fault at its index: %j', async (cron, errors) => {
    for (const answer of [
      await put('refused', { cron }),
      await preview({ cron }),
      await api.call('PATCH', '/api/v1/schedules/listed', { cron }),
    ]) {
      expect(faults(answer)).toEqual({ status: 400, errors });
    }
    expect((await get('/schedules/refused')).status).toBe(404);
  });

  test('is refused if one of them never fires, whatever the others do', async () => {
    const cron = ['0 0 31 2 *', '@daily', '0 0 31 4,6 *'];
    const errors = [
      { path: '/cron/0', message: 'never fires' },
      { path: '/cron/2', message: 'never fires' },
    ];
    expect(faults(await put('barren', { cron }))).toEqual({ status: 422, errors });
    expect(faults(await preview({ cron }))).toEqual({ status: 422, errors });
    const window = { cron: ['0 0 1 1 *', '0 0 1 2 *'], startAt: '2090-03-01T00:00:00Z' };
    expect(faults(await put('barren', { ...window, endAt: '2090-12-01T00:00:00Z' }))).toMatchObject({
      status: 422,
      errors: [{ path: '/endAt', message: expect.stringMatching(/leaves no fire time/) as string }],
    });
  });
});

describe('the fires of several expressions', () => {
  const CHANGING = { cron: ['30 2 * * *', '0 * * * *', '0 3 * * *'], timezone: 'Europe/Berlin' };
  const NOTED = [
    { fireAt: '2027-03-28T00:00:00.000Z', local: '2027-03-28T01:00:00.000+01:00' },
    { fireAt: '2027-03-28T01:00:00.000Z', local: '2027-03-28T03:00:00.000+02:00', note: 'moved by DST' },
    { fireAt: '2027-03-28T02:00:00.000Z', local: '2027-03-28T04:00:00.000+02:00' },
  ];

  test('are previewed with their notes and a description, and are the same as upcoming', async () => {
    const from = '2027-03-27T23:30:00Z';
    const answer = await preview({ ...CHANGING, from, count: 3 });
    expect(answer.body).toEqual({
      description: 'At 02:30; every hour; and at 03:00',
      items: NOTED,
    });
    await put('changing', CHANGING);
    const upcoming = await get(`/schedules/changing/upcoming?from=${from}&count=3`);
    expect(upcoming.body).toEqual({ items: NOTED, warnings: [] });
    const hashed = await preview({ cron: ['0 9 * * *', 'H 3 * * *'] });
    expect(hashed.body).toHaveProperty('assumes');
    expect((await preview({ cron: ['0 9 * * *', 'H 3 * * *'], id: 'job' })).body).not.toHaveProperty('assumes');
  });

  test('are counted, listed and backfilled each once', async () => {
    await put('counted', { cron: ['0 0 29 2 *', '*/20 0 29 2 *', '30 0 29 2 *'] });
    await api.sql`UPDATE schedule_versions SET at = '2027-01-01' WHERE schedule_id = 'counted'`;
    const day = 'from=2028-02-29T00:00:00Z&to=2028-02-29T01:00:00Z';
    const times = ['00', '20', '30', '40'].map((minute) => `2028-02-29T00:${minute}:00.000Z`);
    const load = await get(`/load?${day}&bucketSeconds=60`);
    expect(items(load).filter(({ at }) => times.includes(at as string))).toHaveLength(4);
    const occurrences = await get(`/schedules/counted/occurrences?${day}`);
    expect(moments(occurrences)).toEqual(times);
    expect(items(occurrences).map(({ state }) => state)).toEqual(Array(4).fill('upcoming'));
    const backfilled = await api.call('POST', '/api/v1/schedules/counted/backfill', {
      from: '2024-02-29T00:00:00Z',
      to: '2024-02-29T01:00:00Z',
    });
    expect(backfilled.body).toMatchObject({ created: 4, existing: 0 });
  });

  test('are computed for sixteen expressions that all fire every second', async () => {
    const cron = Array.from({ length: 16 }, (_, n) => `* * 0-${n},${n + 1}-23 * * *`);
    await put('busy', { cron, enabled: false });
    const from = '2028-01-01T00:00:00.000Z';
    const [page, counted] = [
      await get(`/schedules/busy/occurrences?from=${from}&to=2028-01-01T01:00:00.000Z&limit=500`),
      await preview({ cron, from, count: 1000 }),
    ];
    expect([items(page).length, items(counted).length]).toEqual([500, 1000]);
  });
});

/** The fifth of a weekday near a day: each a pattern of its own, and some match seldom. */
const NEW = Array.from(
  { length: 16 },
  (_, index) => `0 ${index} ${index + 10}W * +${(index % 5) + 1}#${2 + (index % 3)}`,
);

test(
  'the days of sixteen new expressions are computed a month at a time, and none afterwards',
  { tags: [ATTACK] },
  async () => {
    const matches = vi.spyOn(Cron.prototype, 'match');
    let before = 0;
    let most = 0;
    const timing = { ...DEFAULT_TIMING, cron: NEW, at: null, after: null, everySeconds: null };
    await lookAhead(timing, '', () => {
      most = Math.max(most, matches.mock.calls.length - before);
      before = matches.mock.calls.length;
      return undefined;
    });
    expect(before).toBeGreaterThan(1000);
    // For a day of both fields, the weekdays come first.
    expect(most).toBeLessThanOrEqual(2 * 31);

    matches.mockClear();
    const now = Date.UTC(2030, 0, 1);
    outlookOf(timing, '', now);
    const times = fireTimes(timing, { id: '', createdAt: now });
    let at = times.next(now);
    for (let count = 0; count < 100 && at !== null; count += 1) at = times.next(at);
    await lookAhead(timing, '');
    expect(matches).not.toHaveBeenCalled();
  },
);
