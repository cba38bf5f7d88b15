import { beforeEach, describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { type Answer, type Json, SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';

const api = quietApi();

const item = (ref: string, more: object = {}) => ({ ref, target: TARGET, ...more });
const submit = (body: unknown) => api.call('POST', '/api/v1/runs/batch', body);
const get = (path: string) => api.call('GET', `/api/v1/${path}`);
const itemsOf = (answer: Answer) => answer.body['items'] as unknown as Json[];
const refsIn = (answer: Answer) => itemsOf(answer).map(({ ref }) => ref as unknown as string);

/** A batch that was taken: its id, and those of its runs by ref. */
async function taken(body: object): Promise<{ batchId: string; ids: Record<string, string> }> {
  const answer = await submit(body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  const ids = itemsOf(answer).map(({ ref, id }) => [ref, id] as unknown as [string, string]);
  return { batchId: answer.body['batchId'] as unknown as string, ids: Object.fromEntries(ids) };
}

const ETL = {
  name: 'etl 2026-11-20',
  labels: { pipeline: 'etl', tier: 'batch' },
  items: [
    item('load', { dependsOn: ['eu', 'us'], labels: { tier: 'interactive', team: 'bi' } }),
    item('extract'),
    item('eu', { dependsOn: ['extract'] }),
    item('us', { dependsOn: ['extract'] }),
  ],
};

beforeEach(async () => {
  await api.sql`TRUNCATE runs, history, run_tags, batches, run_keys, run_dependencies, effects`;
});

describe('a batch', () => {
  test('shows its runs in the order of the call, what each waits for, and how each stands', async () => {
    const { old = '' } = (await taken({ items: [item('old')] })).ids;
    const items = [...ETL.items, item('tell', { dependsOn: [old, 'load'] })];
    const { batchId, ids } = await taken({ ...ETL, items });
    await changeRun(api.sql, ids['extract'] ?? '', { status: 'succeeded' });
    const { status, body } = await get(`batches/${batchId}`);
    expect(status).toBe(200);
    expect(body).toEqual({
      id: batchId,
      name: ETL.name,
      labels: ETL.labels,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      items: [
        { ref: 'load', id: ids['load'], status: 'waiting', dependsOn: ['eu', 'us'] },
        { ref: 'extract', id: ids['extract'], status: 'succeeded', dependsOn: [] },
        { ref: 'eu', id: ids['eu'], status: 'waiting', dependsOn: ['extract'] },
        { ref: 'us', id: ids['us'], status: 'waiting', dependsOn: ['extract'] },
        { ref: 'tell', id: ids['tell'], status: 'waiting', dependsOn: [old, 'load'] },
      ],
    });
  });

  test('is named by its runs, whose labels are added to its own and win', async () => {
    const { batchId, ids } = await taken(ETL);
    expect((await get(`runs/${ids['eu'] ?? ''}`)).body).toMatchObject({
      ...{ batchId, ref: 'eu', labels: { pipeline: 'etl', tier: 'batch' } },
    });
    expect((await get(`runs/${ids['load'] ?? ''}`)).body).toMatchObject({
      ...{ batchId, ref: 'load', labels: { pipeline: 'etl', tier: 'interactive', team: 'bi' } },
    });
    const all = itemsOf(await get(`runs?batchId=${batchId}`));
    expect(all.map(({ id }) => id).sort()).toEqual(Object.values(ids).sort());
    expect(refsIn(await get(`runs?batchId=${batchId}&label=tier:interactive&status=waiting`))).toEqual([
      'load',
    ]);
    expect(itemsOf(await get(`runs?batchId=${batchId}&label=tier:none`))).toEqual([]);
    expect(itemsOf(await get(`runs?batchId=${ids['eu'] ?? ''}`))).toEqual([]);
  });

  test('that is sent again with its keys is the batch that it made; what is new beside it is another one', async () => {
    const keyed = ETL.items.map((one) => ({ ...one, key: `etl-${one.ref}` }));
    const first = await taken({ ...ETL, items: keyed });
    const again = await submit({ ...ETL, items: keyed });
    expect([again.status, again.body['batchId']]).toEqual([200, first.batchId]);
    const more = await taken({ ...ETL, items: [...keyed, item('report', { dependsOn: ['load'] })] });
    expect(more.batchId).not.toBe(first.batchId);
    expect(itemsOf(await get(`batches/${more.batchId}`))).toEqual([
      { ref: 'report', id: more.ids['report'], status: 'waiting', dependsOn: [first.ids['load']] },
    ]);
    const relabelled = await submit({ ...ETL, labels: {}, items: keyed });
    expect([relabelled.status, faultPaths(relabelled)]).toEqual([
      422,
      ['/items/0/key', '/items/1/key', '/items/2/key', '/items/3/key'],
    ]);
    const nothing = await submit({ name: 'nothing', items: [] });
    expect([nothing.status, nothing.body]).toEqual([200, { batchId: null, items: [] }]);
    expect(await api.sql`SELECT 1 FROM batches`).toHaveLength(2);
  });

  test('is there as long as one of its runs is, and 404 for what is none', async () => {
    const { batchId, ids } = await taken(ETL);
    await api.sql`DELETE FROM runs WHERE id <> ${ids['load'] ?? ''}`;
    expect(refsIn(await get(`batches/${batchId}`))).toEqual(['load']);
    await api.sql`DELETE FROM runs`;
    expect((await get(`batches/${batchId}`)).status).toBe(404);
    expect((await get(`batches/${ids['load'] ?? ''}`)).status).toBe(404);
    expect((await get('batches/none')).status).toBe(400);
  });

  test('names every fault of every item at once, and then stores nothing', async () => {
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`k${n}`, '']));
    const answer = await submit({
      ...{ name: '', labels: { 'a:b': 'c' } },
      items: [item('a', { labels: { ['x'.repeat(64)]: 'y' } }), item('a', { dependsOn: ['b c'], wrong: 1 })],
    });
    expect([answer.status, faultPaths(answer).sort()]).toEqual([
      400,
      [
        `/items/0/labels/${'x'.repeat(64)}`,
        '/items/1/dependsOn/0',
        '/items/1/ref',
        '/items/1/wrong',
        '/labels/a:b',
        '/name',
      ].sort(),
    ]);
    const tooMany = await submit({ labels: many, items: [item('a'), item('b', { labels: { more: '1' } })] });
    expect([tooMany.status, faultPaths(tooMany)]).toEqual([400, ['/items/1/labels']]);
    const cycle = await submit({ items: [item('a', { dependsOn: ['b'] }), item('b', { dependsOn: ['a'] })] });
    expect([cycle.status, cycle.text]).toEqual([422, expect.stringContaining('a → b → a')]);
    expect(await api.sql`SELECT run_id FROM run_tags UNION ALL SELECT id FROM batches`).toEqual([]);
  });
});

describe('the labels of a run', () => {
  test('are those of its schedule as they are now, or its own; a filter finds both', async () => {
    await api.call('PUT', '/api/v1/schedules/bill', { ...SCHEDULE, labels: { team: 'billing' } });
    const fired = (await api.call('POST', '/api/v1/schedules/bill/fire')).body;
    const own = await api.call('POST', '/api/v1/runs', {
      target: TARGET,
      labels: { team: 'billing', n: '1' },
    });
    const bare = await api.call('POST', '/api/v1/runs', { target: TARGET });
    expect([own.status, own.body['labels'], own.body['batchId'], own.body['ref']]).toEqual([
      ...[201, { team: 'billing', n: '1' }],
      ...[null, null],
    ]);
    expect([fired['labels'], bare.body['labels']]).toEqual([{ team: 'billing' }, {}]);
    const found = async (query: string) => itemsOf(await get(`runs?${query}`)).map(({ id }) => id);
    const both = [fired['id'], own.body['id']].sort().reverse();
    expect(await found('label=team:billing')).toEqual(both);
    expect(await found('label=team:billing&label=n:1')).toEqual([own.body['id']]);
    expect(await found('label=team:billing&trigger=manual')).toEqual([fired['id']]);
    expect(await found('label=team:billing&trigger=api')).toEqual([own.body['id']]);
    expect(await found('label=team:billing&scheduleId=bill')).toEqual([fired['id']]);
    await api.call('PUT', '/api/v1/schedules/bill', { ...SCHEDULE, labels: { team: 'ops' } });
    expect(await found('label=team:billing')).toEqual([own.body['id']]);
    expect((await get(`runs/${fired['id'] as unknown as string}`)).body['labels']).toEqual({ team: 'ops' });
    const counted = await api.sql`SELECT run_id FROM run_tags`;
    expect(counted).toEqual([{ run_id: own.body['id'] }]);
  });

  test('choose the runs of a bulk action, as its batch does', async () => {
    const { batchId, ids } = await taken(ETL);
    const other = await taken({ ...ETL, labels: {} });
    const bulk = async (filter: object) => {
      const { status, body } = await api.call('POST', '/api/v1/runs/bulk', { action: 'cancel', filter });
      return [status, body['matched'], body['changed']];
    };
    expect(await bulk({ batchId: other.batchId, label: 'tier:interactive' })).toEqual([200, 1, 1]);
    expect(await bulk({ label: ['pipeline:etl', 'tier:interactive'] })).toEqual([200, 1, 1]);
    expect((await get(`runs/${ids['load'] ?? ''}`)).body['status']).toBe('cancelled');
    expect(await bulk({ batchId })).toEqual([200, 3, 3]);
    expect(await bulk({ batchId: ids['load'] })).toEqual([200, 0, 0]);
    expect(refsIn(await get('runs?status=waiting,pending')).sort()).toEqual(['eu', 'extract', 'us']);
    expect((await bulk({ batchId: 'x' }))[0]).toBe(400);
  });
});
