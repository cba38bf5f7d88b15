import { describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi } from '../api.ts';

const api = sharedApi();

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
    const text = JSON.stringify({ ...SCHEDULE, target }).replace(
      /}$/,
      ',"payload":{"n": 1.000000000000000000001}}',
    );
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

const READ_ONLY =
  'pingKey status late error nextFireAt lastFireAt lockedBy lockedAt version createdAt updatedAt'.split(' ');
