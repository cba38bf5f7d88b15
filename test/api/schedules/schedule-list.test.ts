import { beforeAll, expect, test } from 'vitest';
import { type Answer, SCHEDULE, faultPaths, sharedApi } from '../api.ts';

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
const ids = (answer: Answer) => (answer.body['items'] as unknown as { id: string }[]).map(({ id }) => id);

test('pages follow each other by id, without gap or repetition, to the null of the last', async () => {
  const seen: string[] = [];
  let cursor = '';
  for (let pages = 1; ; pages += 1) {
    const page = await list(`limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`);
    expect(page.status).toBe(200);
    seen.push(...ids(page));
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
    pages.push(ids(page));
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
  expect(ids(await list('enabled=false'))).toEqual(['s00', 's05', 's10', 's15', 's20']);
  expect(ids(await list('status=paused'))).toEqual(['s00', 's05', 's10', 's15', 's20']);
  expect(ids(await list('status=paused,active&limit=500'))).toHaveLength(26);
  expect(ids(await list('status=ended,error'))).toEqual([]);
  expect(ids(await list('label=tier:a:b'))).toEqual(['s00', 's01', 's02', 's03']);
  expect(ids(await list('label=tier:a:b&label=team:ops'))).toEqual(['s01', 's03']);
  expect(ids(await list('label=team:ops&enabled=false'))).toEqual(['s05', 's15']);
  expect(ids(await list('q=zUL'))).toEqual(['Zulu']);
  expect(ids(await list('q=of+the_rep'))).toEqual(['s07']);
  expect(ids(await list('q=100%25'))).toEqual(['s07']);
  expect(ids(await list('q=%25'))).toEqual(['s07']);
  expect(ids(await list('q=%5C'))).toEqual([]);
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
  ['q=%00', ['q']],
  ['q=%ff', ['q']],
  ['q=%', ['q']],
  ['nope=1', ['nope']],
  ['__proto__=1', ['__proto__']],
  ['constructor=1', ['constructor']],
  ['limit=x&nope=1&status=y', ['limit', 'nope', 'status']],
])('refuses ?%s', async (query, paths) => {
  const answer = await list(query);
  expect(answer.status).toBe(400);
  expect(faultPaths(answer)).toEqual(paths);
});
