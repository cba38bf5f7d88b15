import { beforeAll, expect, test, describe } from 'vitest';
import { type Answer, SCHEDULE, faultPaths, sharedApi, TARGET, idsOf } from '../api.ts';

const api = sharedApi();
beforeAll(async () => {
  const items = Array.from({ length: 25 }, (_, n) => ({
    ...SCHEDULE,
    id: `s${String(n).padStart(2, '0')}`,
    enabled: n % 5 !== 0,
    description: n === 7 ? '100% of the_reports' : null,
    labels: { team: n % 2 === 0 ? 'billing' : 'ops', ...(n < 4 ? { tier: 'a:b' } : {}) },
  }));
  await api.call('POST', '/api/v1/schedules/batch', { items });
  await api.call('PUT', '/api/v1/schedules/Zulu', SCHEDULE);
});

const list = (query: string) => api.call('GET', `/api/v1/schedules?${query}`);

test('pages follow each other by id, without gap or repetition, to the null of the last', async () => {
  const seen: string[] = [];
  let cursor = '';
  for (let pages = 1; ; pages += 1) {
    const page = await list(`limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`);
    expect(page.status).toBe(200);
    seen.push(...idsOf(page));
    const next = page.body['nextCursor'] as unknown as string | null;
    if (next === null) {
      expect(pages).toBe(4);
      break;
    }
    cursor = next;
  }
  expect(seen).toEqual([...seen].sort());
  expect(seen).toHaveLength(26);
  expect(new Set(seen).size).toBe(26);
});

test('looks at only so many schedules where it is asked to, and goes on from there', async () => {
  const pages: string[][] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const next: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await list(`label=tier:a:b&limit=2&maxSchedules=6${next}`);
    pages.push(idsOf(page));
    cursor = page.body['nextCursor'] as unknown as string | null;
  }
  // The first six are Zulu and s00 to s04.
  expect(pages).toEqual([['s00', 's01'], ['s02', 's03'], [], [], []]);
  expect((await list('maxSchedules=26&limit=500')).body['nextCursor']).not.toBeNull();
  expect((await list('maxSchedules=27&limit=500')).body['nextCursor']).toBeNull();
});

test('a page that ends exactly at the end is the last', async () => {
  expect((await list('limit=26')).body['nextCursor']).toBeNull();
  expect((await list('limit=25')).body['nextCursor']).not.toBeNull();
});

test('filters by enabled, status, labels and text, all of which must hold', async () => {
  expect(idsOf(await list('enabled=false'))).toEqual(['s00', 's05', 's10', 's15', 's20']);
  expect(idsOf(await list('status=paused'))).toEqual(['s00', 's05', 's10', 's15', 's20']);
  expect(idsOf(await list('status=paused,active&limit=500'))).toHaveLength(26);
  expect(idsOf(await list('status=ended,error'))).toEqual([]);
  expect(idsOf(await list('label=tier:a:b'))).toEqual(['s00', 's01', 's02', 's03']);
  expect(idsOf(await list('label=tier:a:b&label=team:ops'))).toEqual(['s01', 's03']);
  expect(idsOf(await list('label=team:ops&enabled=false'))).toEqual(['s05', 's15']);
  expect(idsOf(await list('q=zUL'))).toEqual(['Zulu']);
  expect(idsOf(await list('q=of+the_rep'))).toEqual(['s07']);
  expect(idsOf(await list('q=100%25'))).toEqual(['s07']);
  expect(idsOf(await list('q=%25'))).toEqual(['s07']);
  expect(idsOf(await list('q=%5C'))).toEqual([]);
});

test.each([
  ['limit=0', ['limit']],
  ['maxSchedules=0', ['maxSchedules']],
  ['limit=501', ['limit']],
  ['limit=-1', ['limit']],
  ['limit=1e2', ['limit']],
  ['limit=', ['limit']],
  ['limit=5&limit=6', ['limit']],
  ['enabled=yes', ['enabled']],
  ['enabled=', ['enabled']],
  ['status=happy', ['status']],
  ['status=', ['status']],
  ['status=active,', ['status']],
  ['status=active&status=paused', ['status']],
  ['label=nocolon', ['label']],
  ['cursor=garbage', ['cursor']],
  ['cursor=e30', ['cursor']],
  ['cursor=bnVsbA', ['cursor']],
  ['limit=x&nope=1&status=y', ['limit', 'nope', 'status']],
])('refuses ?%s', async (query, paths) => {
  const answer = await list(query);
  expect(answer.status).toBe(400);
  expect(faultPaths(answer)).toEqual(paths);
});

interface Version {
  version: number;
  at: string;
  by: string | null;
  change: string;
  schedule: Record<string, unknown>;
}

const path = (id: string) => `/api/v1/schedules/${id}`;
const put = (id: string, body: object) => api.call('PUT', path(id), body);
const versions = (id: string, query = '') => api.call('GET', `${path(id)}/versions?${query}`);
const itemsOf = (answer: Answer) => answer.body['items'] as unknown as Version[];

describe('the versions of a schedule', () => {
  test('are listed newest first, each as it was answered then, and readable after deletion', async () => {
    const created = await put('v', { ...SCHEDULE, description: 'one', labels: { team: 'a' } });
    await put('v', { ...SCHEDULE, description: 'one', labels: { team: 'a' } });
    await api.call('PATCH', path('v'), { cron: null, everySeconds: 90, jitterSeconds: 5, catchUp: 'all' });
    const edited = await api.call('GET', path('v'));
    await api.call('DELETE', path('v'));
    const answer = await versions('v');
    expect([answer.status, answer.body['nextCursor']]).toEqual([200, null]);
    const items = itemsOf(answer);
    expect(items.map(({ version, change, by }) => [version, change, by])).toEqual([
      [3, 'deleted', null],
      [2, 'updated', null],
      [1, 'created', null],
    ]);
    expect(items[2]?.at).toBe(created.body['createdAt']);
    expect(items[1]?.at).toBe(edited.body['updatedAt']);
    for (const [index, answered] of [edited, edited, created].entries()) {
      const schedule = items[index]?.schedule ?? {};
      expect(answered.body).toMatchObject(schedule);
      expect(Object.keys(schedule).sort()).toEqual(
        Object.keys(answered.body)
          .filter((field) => !READ_ONLY.includes(field))
          .sort(),
      );
    }
    expect(items[0]?.schedule).toMatchObject({ id: 'v', cron: null, everySeconds: 90, jitterSeconds: 5 });
  });

  test('keep their secrets, and the digits of their payloads', async () => {
    const target = { ...TARGET, headers: { authorization: 'Bearer abc' } };
    await put('secret', { ...SCHEDULE, target });
    const text = JSON.stringify({ ...SCHEDULE, target }).replace(/}$/, ',"payload":{"n": 1.000000000000000000001}}');
    expect((await api.call('PUT', path('secret'), text)).status).toBe(200);
    const answer = await versions('secret');
    expect(answer.text).not.toContain('abc');
    expect(answer.text).toContain('"payload":{"n": 1.000000000000000000001}');
    expect(itemsOf(answer).map(({ schedule }) => schedule['payload'])).toEqual([{ n: 1 }, null]);
  });

  test('come in pages, over every schedule that ever had the id', async () => {
    for (let round = 0; round < 3; round += 1) {
      await put('again', { ...SCHEDULE, description: `${round}` });
      await api.call('DELETE', path('again'));
    }
    // Written in one millisecond: the order is told by uid and version then.
    await api.sql`UPDATE schedule_versions SET at = '2026-01-01' WHERE schedule_id = 'again'`;
    const whole = itemsOf(await versions('again'));
    expect(whole).toHaveLength(6);
    const paged: Version[] = [];
    let query: string | null = 'limit=1';
    while (query !== null) {
      const page = await versions('again', query);
      paged.push(...itemsOf(page));
      const cursor = page.body['nextCursor'] as unknown as string | null;
      query = cursor && `limit=1&cursor=${cursor}`;
    }
    expect(paged).toEqual(whole);
    expect(whole.map(({ change }) => change)).toEqual(Array(3).fill(['deleted', 'created']).flat());
  });

  test('are 404 if the id was never known', async () => {
    expect((await versions('nobody')).status).toBe(404);
  });

  test.each([
    ['limit=0&cursor=x&from=1', ['cursor', 'from', 'limit']],
    [`cursor=${Buffer.from('{"at":0,"uid":"x","version":1}').toString('base64url')}`, ['cursor']],
  ])('are refused with ?%s', async (query, paths) => {
    const answer = await versions('v', query);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
  });
});

const READ_ONLY = 'pingKey status late error nextFireAt lastFireAt lockedBy lockedAt version createdAt updatedAt'.split(
  ' ',
);
