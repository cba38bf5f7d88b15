import { beforeEach, describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { type Answer, SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';

const api = quietApi();

const bulk = (body: unknown) => api.call('POST', '/api/v1/runs/bulk', body);
const put = (id: string, more: object = {}) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, ...more });
const list = async (query: string) => idsOf(await api.call('GET', `/api/v1/runs?limit=500&${query}`));
const idsOf = (answer: Answer) => (answer.body['items'] as unknown as { id: string }[]).map(({ id }) => id);
const statusOf = async (id: string | undefined) =>
  (await api.call('GET', `/api/v1/runs/${id ?? ''}`)).body['status'] as unknown as string;

/** Runs of a schedule, the oldest first, in this status. */
async function made(
  scheduleId: string,
  count: number,
  status: string,
  columns: object = {},
): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const { body } = await api.call('POST', `/api/v1/schedules/${scheduleId}/fire`);
    const id = body['id'] as unknown as string;
    await changeRun(api.sql, id, { status, failures: 3, attempts: 3, ...columns });
    ids.push(id);
  }
  return ids.sort();
}

beforeEach(async () => {
  await api.sql`DELETE FROM runs`;
  await api.sql`DELETE FROM history`;
  await put('bill-1', { labels: { team: 'billing', tier: 'a:b' } });
  await put('bill-2', { labels: { team: 'billing' } });
  await put('ops', { labels: { team: 'ops', odd: '"\\{}' } });
});

test('a label in a list matches the present labels of the schedule; several must all match', async () => {
  const first = await made('bill-1', 2, 'failed');
  const second = await made('bill-2', 2, 'succeeded');
  const ops = await made('ops', 1, 'pending');
  await api.call('POST', '/api/v1/runs', { target: TARGET });
  const newest = (...ids: string[]) => ids.sort().reverse();
  expect(await list('label=team:billing')).toEqual(newest(...first, ...second));
  expect(await list('label=team:billing&status=failed')).toEqual(newest(...first));
  expect(await list('label=team:billing&label=tier:a:b')).toEqual(newest(...first));
  expect(await list('label=team:billing&label=team:ops')).toEqual([]);
  expect(await list('label=team:billing&scheduleId=bill-2')).toEqual(newest(...second));
  expect(await list('label=team:billing&scheduleId=ops')).toEqual([]);
  expect(await list(`label=${encodeURIComponent('odd:"\\{}')}`)).toEqual(ops);
  expect(await list('label=team:bill')).toEqual([]);
  await put('bill-2', { labels: { team: 'ops' } });
  expect(await list('label=team:ops')).toEqual(newest(...second, ...ops));
  await api.call('DELETE', '/api/v1/schedules/ops');
  expect(await list('label=team:ops')).toEqual(newest(...second));
  const page = await api.call('GET', '/api/v1/runs?label=team:billing&limit=1');
  const next = page.body['nextCursor'] as unknown as string;
  expect([...idsOf(page), ...(await list(`label=team:billing&cursor=${next}`))]).toEqual(newest(...first));
  expect(faultPaths(await api.call('GET', '/api/v1/runs?label=nocolon'))).toEqual(['label']);
});

test.each([
  [{}, ['/action', '/filter']],
  [{ action: 'retry', filter: {} }, ['/filter']],
  [{ action: 'retry', filter: { nope: 1 } }, ['/filter', '/filter/nope']],
  [{ action: 'complete', filter: { label: 'a:b' }, limit: 0 }, ['/action', '/limit']],
  [
    { action: 'retry', filter: { label: 'ab', status: 'happy', trigger: [], scheduleId: '/' } },
    ['/filter/label', '/filter/scheduleId', '/filter/status', '/filter/trigger'],
  ],
  [
    { action: 'retry', filter: { label: [], status: ['failed', 'x'], from: 'now' } },
    ['/filter/from', '/filter/label', '/filter/status'],
  ],
  [{ action: 'cancel', filter: { label: null, status: null } }, ['/filter/label', '/filter/status']],
  [
    { action: 'cancel', filter: { from: '2026-11-20T00:00:00Z', to: '2026-11-20T00:00:00Z' } },
    ['/filter/to'],
  ],
  [
    { action: 'cancel', filter: { scheduleId: 'a' }, limit: 10_001, dryRun: 'no', until: 1 },
    ['/dryRun', '/limit', '/until'],
  ],
])('refuses %j, and names each fault', async (body, paths) => {
  const answer = await bulk(body);
  expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
});

describe('retry', () => {
  test('opens all matching runs that can be retried, as if each had been named; a dry run only counts them', async () => {
    const failed = await made('bill-1', 3, 'failed');
    const skipped = await made('bill-2', 2, 'skipped', { reason: 'missed' });
    const others = [
      ...(await made('bill-1', 1, 'succeeded')),
      ...(await made('bill-1', 1, 'running')),
      ...(await made('ops', 1, 'failed')),
    ];
    const newest = [...failed, ...skipped].sort().reverse();
    const request = { action: 'retry', filter: { label: 'team:billing' } };
    const dry = await bulk({ ...request, dryRun: true });
    expect([dry.status, dry.body]).toEqual([200, { matched: 5, changed: 0, remaining: 5, sample: newest }]);
    expect(await list('status=pending')).toEqual([]);
    api.justWoken();
    await put('bill-2', { labels: { team: 'billing' }, priority: 'high' });
    const done = await bulk(request);
    expect(done.body).toEqual({ matched: 5, changed: 5, remaining: 0, sample: newest });
    expect(await list('status=pending')).toEqual(newest);
    expect(api.justWoken()).toMatchObject({ dispatch: 1, workers: 0 });
    const reopened = await api.call('GET', `/api/v1/runs/${skipped[0] ?? ''}`);
    expect(reopened.body).toMatchObject({ failures: 0, attempts: 3, reason: null, priority: 'high' });
    for (const id of others) expect(await statusOf(id)).not.toBe('pending');
    expect((await bulk(request)).body).toEqual({ matched: 0, changed: 0, remaining: 0, sample: [] });
  });

  test('takes statuses and triggers as in a query, or as lists, and a period', async () => {
    const failed = await made('bill-1', 2, 'failed');
    const [cancelled = ''] = await made('bill-1', 1, 'cancelled', { reason: 'request' });
    const matched = async (filter: object) =>
      (await bulk({ action: 'retry', filter, dryRun: true })).body['matched'];
    expect(await matched({ status: 'failed,unknown' })).toBe(2);
    expect(await matched({ status: ['failed', 'cancelled'], trigger: ['manual'] })).toBe(3);
    expect(await matched({ status: 'succeeded,pending' })).toBe(0);
    expect(await matched({ trigger: 'schedule' })).toBe(0);
    expect(await matched({ scheduleId: 'nobody' })).toBe(0);
    expect(await matched({ label: ['team:billing', 'tier:a:b'], scheduleId: 'bill-1' })).toBe(3);
    const { body } = await api.call('GET', `/api/v1/runs/${cancelled}`);
    expect(await matched({ from: body['scheduledFor'] })).toBe(1);
    expect(await matched({ scheduleId: 'bill-1', to: body['scheduledFor'] })).toBe(failed.length);
  });

  test('leaves runs of a deleted schedule, which have no definition any more', async () => {
    await put('gone');
    const [gone] = await made('gone', 1, 'failed');
    const { body } = await api.call('POST', '/api/v1/runs', { target: TARGET });
    const oneOff = body['id'] as unknown as string;
    await changeRun(api.sql, oneOff, { status: 'failed' });
    await api.call('DELETE', '/api/v1/schedules/gone');
    const answer = await bulk({ action: 'retry', filter: { status: 'failed' } });
    expect(answer.body).toEqual({ matched: 1, changed: 1, remaining: 0, sample: [oneOff] });
    expect(await statusOf(gone)).toBe('failed');
  });

  test('acts on no more than `limit`, the newest first, and the next call goes on', async () => {
    const failed = await made('ops', 12, 'failed');
    const request = { action: 'retry', filter: { scheduleId: 'ops' }, limit: 5 };
    const newest = failed.toReversed();
    const answer = (await bulk(request)).body;
    expect(answer).toEqual({ matched: 12, changed: 5, remaining: 7, sample: newest.slice(0, 5) });
    expect(await list('status=failed')).toEqual(newest.slice(5));
    expect((await bulk({ ...request, dryRun: true })).body['sample']).toEqual(newest.slice(5));
    expect((await bulk({ ...request, limit: 7 })).body).toMatchObject({
      matched: 7,
      changed: 7,
      remaining: 0,
    });
  });

  test('does not wait for a run, or a schedule, that another transaction has locked: it remains', async () => {
    const [first = '', second = ''] = await made('bill-1', 2, 'failed');
    const ofLocked = await made('bill-2', 1, 'failed');
    const request = { action: 'retry', filter: { label: 'team:billing' } };
    const answer = await api.sql.begin(async (tx) => {
      await tx`SELECT FROM history WHERE id = ${first} FOR UPDATE`;
      await tx`SELECT FROM schedules WHERE id = 'bill-2' FOR UPDATE`;
      return bulk(request);
    });
    expect(answer.body).toMatchObject({ matched: 3, changed: 1, remaining: 2 });
    expect(await list('status=failed')).toEqual([first, ...ofLocked].sort().reverse());
    expect(await statusOf(second)).toBe('pending');
    expect((await bulk(request)).body).toMatchObject({ matched: 2, changed: 2, remaining: 0 });
  });

  test('one run that the database refuses remains, and the others are retried', async () => {
    const failed = await made('ops', 5, 'failed');
    const bad = failed[2] ?? '';
    await api.sql.unsafe(`ALTER TABLE runs ADD CONSTRAINT refused CHECK (id <> '${bad}')`);
    const answer = await bulk({ action: 'retry', filter: { label: 'team:ops' } });
    await api.sql`ALTER TABLE runs DROP CONSTRAINT refused`;
    expect(answer.body).toMatchObject({ matched: 5, changed: 4, remaining: 1 });
    expect(await list('status=failed')).toEqual([bad]);
  });
});

test('two calls at once act on each run once, and share the work', async () => {
  const items = Array.from({ length: 300 }, (_, n) => ({ ref: `r${n}`, target: TARGET }));
  await api.call('POST', '/api/v1/runs/batch', { items });
  const twice = async (action: string) => {
    const request = { action, filter: { trigger: 'api' } };
    const answers = await Promise.all([bulk(request), bulk(request)]);
    return answers.map(({ body }) => Number(body['changed'])).reduce((sum, changed) => sum + changed);
  };
  expect([await twice('cancel'), (await list('status=cancelled')).length]).toEqual([300, 300]);
  expect([await twice('retry'), (await list('status=pending')).length]).toEqual([300, 300]);
});

test('cancel ends what is open, tells targets of running runs, and leaves ended runs alone', async () => {
  const open = [
    ...(await made('bill-1', 2, 'pending')),
    ...(await made('bill-1', 1, 'waiting')),
    ...(await made('bill-2', 1, 'running')),
  ];
  await made('bill-1', 2, 'failed');
  const untouched = await made('ops', 1, 'pending');
  const request = { action: 'cancel', filter: { label: ['team:billing'] } };
  const running = (await list('status=running'))[0];
  expect(
    (await bulk({ ...request, filter: { label: 'team:billing', status: 'failed' } })).body['matched'],
  ).toBe(0);
  expect((await bulk(request)).body).toMatchObject({ matched: 4, changed: 4, remaining: 0 });
  expect(await list('status=cancelled')).toEqual(open.sort().reverse());
  expect(await api.cancelled()).toEqual([running]);
  expect(await statusOf(untouched[0])).toBe('pending');
  expect((await api.call('GET', `/api/v1/runs/${open[0] ?? ''}`)).body['reason']).toBe('request');
});
