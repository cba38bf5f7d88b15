import { beforeEach, describe, expect, test } from 'vitest';
import { LONG } from '../../support/runner/long.ts';
import { type Answer, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();
beforeEach(() => api.sql`DELETE FROM schedules`);

interface Bucket {
  at: string;
  fires: number;
}

const load = (query = '') => api.call('GET', `/api/v1/load?${query}`);
const itemsOf = (answer: Answer) => answer.body['items'] as unknown as Bucket[];

async function put(...schedules: object[]): Promise<void> {
  const items = schedules.map((timing, index) => ({ id: `s${index}`, target: TARGET, ...timing }));
  expect((await api.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
}

describe('the load', () => {
  const day = 'from=2090-06-01T00:00:00Z&to=2090-06-02T00:00:00Z';

  test('counts the fires that are due in each bucket, and shows the herd', async () => {
    await put(
      { cron: '0 0 * * *' },
      { cron: '0 0 * * *' },
      { cron: '0 0 * * *', timezone: 'Asia/Tokyo' },
      { cron: '30 12 * * *' },
      { everySeconds: 43_200, startAt: '2090-01-01T12:30:10Z' },
      { at: '2090-06-01T23:59:59.999Z' },
      { at: '2090-06-02T00:00:00Z' },
      { cron: '0 0 * * *', enabled: false },
      { after: { scheduleId: '*' } },
    );
    expect((await load(day)).body).toEqual({
      items: [
        { at: '2090-06-01T00:00:00.000Z', fires: 2 },
        { at: '2090-06-01T00:30:00.000Z', fires: 1 },
        { at: '2090-06-01T12:30:00.000Z', fires: 2 },
        { at: '2090-06-01T15:00:00.000Z', fires: 1 },
        { at: '2090-06-01T23:59:00.000Z', fires: 1 },
      ],
      busiest: { at: '2090-06-01T00:00:00.000Z', fires: 2 },
      schedules: 7,
    });
    expect(itemsOf(await load(`${day}&bucketSeconds=43200`))).toEqual([
      { at: '2090-06-01T00:00:00.000Z', fires: 3 },
      { at: '2090-06-01T12:00:00.000Z', fires: 4 },
    ]);
  });

  test('of an empty installation is empty', async () => {
    expect((await load()).body).toEqual({ items: [], busiest: null, schedules: 0 });
  });

  test('covers the next day by default, and the past as if the present schedules had existed', async () => {
    await put({ cron: '* * * * *' });
    const now = async () => Number((await api.sql`SELECT clock_timestamp() AS now`)[0]?.['now']);
    const before = await now();
    const items = itemsOf(await load());
    expect(items).toHaveLength(1440);
    const first = Date.parse(items[0]?.at ?? '');
    expect(first).toBeGreaterThan(before - 60_000);
    expect(first).toBeLessThan((await now()) + 60_000);
    expect(itemsOf(await load('bucketSeconds=1')).length).toBeLessThanOrEqual(34);
    expect(itemsOf(await load('from=2001-01-01T00:00:00Z&to=2001-01-01T00:10:00Z'))).toHaveLength(10);
  });

  /** Page by page, to the end. */
  async function pages(query: string): Promise<Answer[]> {
    const found: Answer[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const answer: Answer = await load(`${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(answer.status).toBe(200);
      found.push(answer);
      cursor = answer.body['nextCursor'] as unknown as string | null;
    }
    return found;
  }

  function sumOf(answers: readonly Answer[]): Bucket[] {
    const sums = new Map<string, number>();
    for (const { at, fires } of answers.flatMap(itemsOf)) sums.set(at, (sums.get(at) ?? 0) + fires);
    return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([at, fires]) => ({ at, fires }));
  }

  test('can be counted page by page, and tells who fires most', async () => {
    const daily = Array.from({ length: 20 }, (_, n) => ({ cron: `${n} 12 * * *` }));
    await put(...daily, { everySeconds: 3600 }, { cron: '0 * * * *' }, { at: '2090-06-02T00:00:00Z' });
    await api.call('POST', '/api/v1/schedules/s3/skip', { fireAt: '2090-06-01T12:03:00Z' });
    const whole = await load(`${day}&top=3`);
    expect(whole.body['firing']).toEqual([
      { id: 's20', fires: 24 },
      { id: 's21', fires: 24 },
      { id: 's0', fires: 1 },
    ]);
    expect(whole.body).not.toHaveProperty('nextCursor');
    const parts = await pages(`${day}&top=100&maxSchedules=7`);
    expect(parts.map(({ body }) => body['schedules'])).toEqual([7, 7, 7, 2]);
    expect(sumOf(parts)).toEqual(itemsOf(whole));
    const firing = parts.flatMap(({ body }) => body['firing'] as unknown as { id: string; fires: number }[]);
    expect(firing.map(({ id }) => id).sort()).toEqual(
      [...Array(22).keys()]
        .filter((n) => n !== 3)
        .map((n) => `s${n}`)
        .sort(),
    );
    const foreign = await load(`${day}&cursor=eyJhZnRlciI6InMxIn0&maxSchedules=0&top=101`);
    expect([foreign.status, faultPaths(foreign)]).toEqual([400, ['cursor', 'maxSchedules', 'top']]);
  });

  test('has shorter pages where schedules take long to count', async () => {
    await put(...Array.from({ length: 12 }, () => ({ cron: '* * * * * *', jitterSeconds: 1 })));
    const hours = 'from=2090-06-01T00:00:00Z&to=2090-06-01T04:00:00Z';
    const parts = await pages(`${hours}&maxSchedules=10000`);
    expect(parts.length).toBeGreaterThan(1);
    expect(sumOf(parts)).toEqual(itemsOf(await load(hours)));
  });

  test('leaves out a row that cannot be planned', async () => {
    await put({ cron: '0 0 * * *' }, { cron: '0 0 * * *' }, { cron: '0 0 * * *' });
    await api.sql`UPDATE schedules SET timing = '{"cron":"soon"}' WHERE id = 's0'`;
    await api.sql`UPDATE schedules SET timing = 'nonsense' WHERE id = 's1'`;
    expect((await load(day)).body).toMatchObject({ busiest: { fires: 1 }, schedules: 1 });
  });

  async function manyAreOneAnswer(many: number, moments: number): Promise<void> {
    await put({ cron: '0 0 * * *' });
    await api.sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority,
        next_occurrence_at, next_fire_at, created_at, updated_at)
      SELECT gen_random_uuid(), 'many-' || n, 1, true, timing, zoned, overlap, lane, priority, next_occurrence_at,
        next_fire_at, created_at, updated_at
      FROM schedules, generate_series(1, ${many}::int) n WHERE id = 's0'`;
    await api.sql`UPDATE schedules SET timing = '{"cron":"H H * * *"}' WHERE id LIKE '%7'`;
    const answers = await Promise.all([load(day), load(day), load(day)]);
    const [first] = answers;
    for (const answer of answers) expect(answer.body).toEqual(first.body);
    const items = itemsOf(first);
    expect(first.body).toMatchObject({ schedules: many + 1, busiest: { at: '2090-06-01T00:00:00.000Z' } });
    expect(items.reduce((sum, { fires }) => sum + fires, 0)).toBe(many + 1);
    expect(items.length).toBeGreaterThan(moments);
  }

  test('of ten thousand schedules is one answer; other calls wait for theirs', () => manyAreOneAnswer(10_000, 600));
  test('of a hundred thousand schedules too', { tags: [LONG] }, () => manyAreOneAnswer(100_000, 1400));

  test('is 422 if there is too much to count', { tags: [LONG] }, async () => {
    await put(...Array.from({ length: 100 }, () => ({ cron: '* * * * * *', jitterSeconds: 1 })));
    const answer = await load(day);
    expect(answer.status).toBe(422);
    expect([answer.body['detail'], faultPaths(answer)]).toEqual([
      expect.stringContaining('choose an earlier end'),
      ['to'],
    ]);
    const [, fitting] = / an earlier end, such as ([^\s"]+)/.exec(answer.text) ?? [];
    const shorter = await load(`from=2090-06-01T00:00:00Z&to=${fitting ?? ''}`);
    expect([shorter.status, itemsOf(shorter).length]).toEqual([
      200,
      expect.toSatisfy((minutes: number) => minutes > 60),
    ]);
    expect((await load('from=2090-06-01T00:00:00Z&to=2090-06-01T00:10:00Z')).status).toBe(200);
  });

  test.each([
    ['from=2090-06-01T00:00:00Z&to=2090-06-03T00:00:00Z', ['bucketSeconds']],
    ['from=2090-06-01T00:00:00Z&to=2090-06-01T00:00:00Z', ['to']],
    ['to=2001-01-01T00:00:00Z', ['to']],
    ['from=x&to=y&bucketSeconds=86401&limit=5', ['bucketSeconds', 'from', 'limit', 'to']],
    ['bucketSeconds=0.5', ['bucketSeconds']],
  ])('is refused for ?%s', async (query, paths) => {
    const answer = await load(query);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });

  test('has at most two thousand buckets, counted from the first one in the period', async () => {
    const to = (seconds: number) => new Date(Date.UTC(2090, 5, 1) + seconds * 1000).toISOString();
    const from = 'from=2090-06-01T00:00:00Z&bucketSeconds=60';
    expect((await load(`${from}&to=${to(120_000)}`)).status).toBe(200);
    expect((await load(`${from}&to=${to(120_001)}`)).status).toBe(400);
    const later = 'from=2090-06-01T00:00:59.999Z&bucketSeconds=60';
    expect((await load(`${later}&to=${to(120_001)}`)).status).toBe(400);
  });
});
