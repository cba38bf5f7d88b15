import { beforeEach, describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { type Answer, SCHEDULE, TARGET, faultPaths, quietApi, errorsOf, itemsOf } from '../api.ts';

const api = quietApi();

const item = (ref: string, more: object = {}) => ({ ref, target: TARGET, ...more });
const submit = (body: unknown) => api.call('POST', '/api/v1/runs/batch', body);
const get = (path: string) => api.call('GET', `/api/v1/${path}`);
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
    expect(refsIn(await get(`runs?batchId=${batchId}&label=tier:interactive&status=waiting`))).toEqual(['load']);
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

describe('a call with many runs', () => {
  const runOf = async (id: unknown) => (await api.call('GET', `/api/v1/runs/${id as string}`)).body;

  /** The ids of a batch that was taken, by ref. */
  async function ids(list: object[], status = 201): Promise<Record<string, string>> {
    const answer = await submit({ items: list });
    expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
    return byRef(answer);
  }

  function byRef(answer: Answer): Record<string, string> {
    const named = answer.body['items'] as unknown as { ref: string; id: string }[];
    return Object.fromEntries(named.map(({ ref, id }) => [ref, id]));
  }

  async function count(): Promise<number> {
    const [row] = await api.sql<{ count: number }[]>`SELECT (SELECT count(*) FROM all_runs)::int
    + (SELECT count(*) FROM run_keys)::int + (SELECT count(*) FROM run_dependencies)::int
    + (SELECT count(*) FROM schedule_versions)::int AS count`;
    return row?.count ?? -1;
  }

  async function refused(body: unknown, status: number, paths: string[]): Promise<Answer> {
    const before = await count();
    const answer = await submit(body);
    expect([answer.status, faultPaths(answer)]).toEqual([status, paths]);
    expect(await count()).toBe(before);
    return answer;
  }

  describe('a batch', () => {
    test('answers refs and ids in the order of the call, and records each of its runs', async () => {
      api.justWoken();
      const answer = await submit({
        items: [item('z', { payload: 1 }), item('a', { payload: 2, priority: 'low' }), item('m')],
      });
      expect([answer.status, itemsOf(answer).map(({ ref }) => ref)]).toEqual([201, ['z', 'a', 'm']]);
      const runs = await Promise.all(itemsOf(answer).map(({ id }) => runOf(id)));
      expect(runs.map(({ payload, priority, status, trigger }) => [payload, priority, status, trigger])).toEqual([
        [1, 'normal', 'pending', 'api'],
        [2, 'low', 'pending', 'api'],
        [null, 'normal', 'pending', 'api'],
      ]);
      expect(api.justWoken()).toEqual({ effects: 0, dispatch: 1, workers: 0, admission: 0, alerts: 0 });
    });

    test('accepts a runAt in any past or future', async () => {
      const [long, far] = ['2000-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z'];
      const run = await ids([item('long', { runAt: long }), item('far', { runAt: far })]);
      expect(await runOf(run['long'])).toMatchObject({ status: 'pending', scheduledFor: long });
      expect(await runOf(run['far'])).toMatchObject({ status: 'pending', scheduledFor: far });
    });

    test('without items does nothing', async () => {
      const answer = await submit({ items: [] });
      expect([answer.status, answer.body]).toEqual([200, { batchId: null, items: [] }]);
    });

    test('can depend on earlier and later items, and on existing runs, in the order of the list', async () => {
      const { old } = await ids([item('old')]);
      const run = await ids([
        item('tell', { dependsOn: ['load', old, 'extract'], onDependencyFailure: 'run' }),
        item('extract'),
        item('load', { dependsOn: ['extract'] }),
      ]);
      expect(await runOf(run['tell'])).toMatchObject({
        status: 'waiting',
        dependsOn: [run['load'], old, run['extract']],
        dependents: [],
      });
      expect(await runOf(run['load'])).toMatchObject({ status: 'waiting', dependsOn: [run['extract']] });
      const { status, dependents } = await runOf(run['extract']);
      expect([status, [...(dependents as unknown as string[])].sort()]).toEqual([
        'pending',
        [run['load'], run['tell']].sort(),
      ]);
      expect(await runOf(old)).toMatchObject({ dependents: [run['tell']] });
    });

    test('prefers an item to a run if a ref looks like the id of a run', async () => {
      const { old = '' } = await ids([item('old')]);
      const run = await ids([item(old), item('next', { dependsOn: [old] })]);
      expect((await runOf(run['next']))['dependsOn']).toEqual([run[old]]);
      expect(run[old]).not.toBe(old);
    });

    test('keeps payloads byte for byte', async () => {
      const text = '{"a" :\t1.0, "a": 12345678901234567890.10}';
      const answer = await submit(
        `{"items":[{"ref":"a","target":${JSON.stringify(TARGET)}},{"ref":"b","payload" : ${text} ,"target":${JSON.stringify(TARGET)}}]}`,
      );
      const read = await api.call('GET', `/api/v1/runs/${itemsOf(answer)[1]?.['id'] as unknown as string}`);
      expect(read.text).toContain(`"payload":${text},`);
    });

    test('that is sent again with its keys answers the same runs', async () => {
      const list = [item('a', { key: 'b-a' }), item('b', { key: 'b-b', dependsOn: ['a'] })];
      const first = await ids(list);
      expect(await ids(list, 200)).toEqual(first);
      const more = await ids([...list, item('c', { dependsOn: ['b'] })]);
      expect(more).toMatchObject(first);
      expect((await runOf(more['c']))['dependsOn']).toEqual([first['b']]);
      expect(Object.keys(more)).toEqual(['a', 'b', 'c']);
    });

    test('may name one run by the ref of its key and by its id', async () => {
      const { a } = await ids([item('a', { key: 'twice-named' })]);
      const run = await ids([item('a', { key: 'twice-named' }), item('b', { dependsOn: ['a', a] })]);
      expect((await runOf(run['b']))['dependsOn']).toEqual([a]);
    });

    test('takes 1000 items, each with many dependencies, and no more', async () => {
      const list = Array.from({ length: 1000 }, (_, n) =>
        item(`n${n}`, {
          target: { type: 'pull', queue: 'wide' },
          dependsOn: Array.from({ length: Math.min(n, 50) }, (_unused, back) => `n${n - 1 - back}`),
        }),
      );
      await refused({ items: [...list, item('one-more')] }, 400, ['/items']);
      const run = await ids(list);
      expect((await runOf(run['n999']))['dependsOn']).toEqual(
        Array.from({ length: 50 }, (_, back) => run[`n${998 - back}`]),
      );
    });

    test('takes 100,000 dependencies in all, and no more', async () => {
      const wide = (each: number) =>
        Array.from({ length: 1000 }, (_, n) =>
          item(`w${n}`, {
            target: { type: 'pull', queue: 'wide' },
            // All upon the first ones, which depend on none.
            dependsOn: n < 200 ? [] : Array.from({ length: each }, (_unused, m) => `w${m}`),
          }),
        );
      const before = await count();
      const answer = await submit({ items: wide(126) });
      expect([answer.status, await count()]).toEqual([422, before]);
      expect(answer.body['detail']).toContain('of at most 100000 in one call');
      const run = await ids(wide(125));
      expect((await runOf(run['w999']))['dependsOn']).toHaveLength(125);
      expect((await runOf(run['w0']))['dependents']).toHaveLength(800);
    });

    test('takes an item with 1000 dependencies, all headers and a large payload', async () => {
      const leaves = Array.from({ length: 999 }, (_, n) => item(`leaf-${n}`));
      const headers = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`X-${n}`, 'v']));
      const call = { url: TARGET.url, headers };
      const { old } = await ids([item('old')]);
      const dependsOn = [...leaves.map(({ ref }) => ref), old];
      const root = item('root', {
        target: { ...TARGET, headers, lookup: call, cancel: call },
        payload: 'x'.repeat(60_000),
        dependsOn,
      });
      const run = await ids([root, ...leaves]);
      expect((await runOf(run['root']))['dependsOn']).toHaveLength(1000);
      await refused({ items: [{ ...root, dependsOn: [...dependsOn, 'root-2'] }, item('root-2')] }, 400, [
        '/items/0/dependsOn',
      ]);
    });

    test('may have a larger body than other calls, up to 16 MiB', async () => {
      const list = Array.from({ length: 100 }, (_, n) => item(`fat-${n}`, { payload: 'x'.repeat(60_000) }));
      expect(Object.keys(await ids(list))).toHaveLength(100);
      await refused(`{"items":[${' '.repeat(16 * 1024 * 1024)}]}`, 413, []);
    });
  });

  describe('is 400, with nothing stored:', () => {
    test('a repeated ref or key, and an empty or repeated dependency', async () => {
      const { old = '' } = await ids([item('old')]);
      const answer = await refused(
        {
          items: [
            item('a', { key: 'k' }),
            item('a'),
            item('b', { key: 'k', dependsOn: ['a', old, 'A', 'a', old.toUpperCase(), 'b c', '', 7, 'c'] }),
            item('no/slash'),
            item('x'.repeat(129)),
            { target: TARGET },
          ],
        },
        400,
        [
          '/items/1/ref',
          ...[2, 3, 4, 5, 6, 7, 8].map((n) => `/items/2/dependsOn/${n}`),
          '/items/2/key',
          '/items/3/ref',
          '/items/4/ref',
          '/items/5/ref',
        ],
      );
      const messages = Object.fromEntries(errorsOf(answer).map(({ path, message }) => [path, message]));
      expect(messages).toMatchObject({
        '/items/1/ref': 'repeats the ref of item 0',
        '/items/2/key': 'repeats the key of item 0',
        '/items/2/dependsOn/2': 'is neither a ref of this call nor the id of a run (a UUID)',
        '/items/2/dependsOn/3': 'repeats dependsOn/0',
        '/items/2/dependsOn/4': 'repeats dependsOn/1',
      });
    });

    test('every fault of every item, and of the body', () =>
      refused(
        {
          items: [
            item('ok'),
            item('b', { priority: 'urgent', runAt: 'now', more: 1 }),
            'x',
            null,
            item('c', { target: { ...TARGET, headers: { A: 'a\nb' } }, dependsOn: 'ok' }),
          ],
          ref: 'x',
        },
        400,
        (
          '/items/1/more /items/1/priority /items/1/runAt /items/2 /items/3 /items/4/dependsOn ' +
          '/items/4/target/headers/A /ref'
        ).split(' '),
      ));

    test('masked header values, of every item', () =>
      refused(
        {
          items: [
            item('a', { target: { ...TARGET, headers: { A: '***' } } }),
            item('b'),
            item('c', { target: { ...TARGET, headers: { A: '***', B: 'b' } } }),
          ],
        },
        400,
        ['/items/0/target/headers/A', '/items/2/target/headers/A'],
      ));

    test('a payload over 64 KiB, and a body nested deeper than 64', async () => {
      await refused({ items: [item('a'), item('b', { payload: 'x'.repeat(64 * 1024) })] }, 400, ['/items/1/payload']);
      const deep = `${'['.repeat(61)}${']'.repeat(61)}`;
      const body = (payload: string) =>
        `{"items":[{"ref":"deep","target":${JSON.stringify(TARGET)},"payload":${payload}}]}`;
      await refused(body(`[${deep}]`), 400, []);
      expect((await submit(body(deep))).status).toBe(201);
    });

    test.each([[{}], [{ items: {} }], [{ items: null }], [[]], ['x'], [{ items: [[]] }], [{ items: [item('')] }]])(
      '%j',
      async (body) => {
        const before = await count();
        expect([(await submit(body)).status, await count()]).toEqual([400, before]);
      },
    );

    test('ten thousand faults are listed, and the search ends there', async () => {
      const dependsOn = Array.from({ length: 1000 }, (_, n) => `nobody-${n}`);
      const before = await count();
      const answer = await submit({
        items: Array.from({ length: 200 }, (_, n) => item(`i${n}`, { dependsOn })),
      });
      expect([answer.status, faultPaths(answer).length, await count()]).toEqual([400, 10_000, before]);
    });

    test('more dependencies than any item has', async () => {
      const dependsOn = Array.from({ length: 300_000 }, () => 'a');
      await refused({ items: [item('a'), item('b', { dependsOn })] }, 400, ['/items/1']);
    });
  });

  describe('is 422, with nothing stored:', () => {
    test.each([
      ['a → a', [item('a', { dependsOn: ['a'] })], '/items/0/dependsOn'],
      ['a → b → a', [item('a', { dependsOn: ['b'] }), item('b', { dependsOn: ['a'] })], '/items/0/dependsOn'],
      [
        'b → c → d → b',
        [
          item('a', { dependsOn: ['b'] }),
          item('b', { dependsOn: ['c'] }),
          item('c', { dependsOn: ['e', 'd'] }),
          item('d', { dependsOn: ['b'] }),
          item('e'),
        ],
        '/items/1/dependsOn',
      ],
    ])('the cycle %s, by name', async (cycle, list, path) => {
      const answer = await refused({ items: list }, 422, [path]);
      expect(errorsOf(answer)[0]?.message).toContain(cycle);
      expect(answer.body['detail']).toContain(cycle);
    });

    test('unknown runs, each of them', async () => {
      const { old = '' } = await ids([item('old')]);
      const unknown = [old.replace(/.$/, (last) => (last === '0' ? '1' : '0')), 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
      await refused(
        {
          items: [
            item('a', { dependsOn: [old, unknown[0]] }),
            item('b', { dependsOn: ['a'] }),
            item('c', { dependsOn: [unknown[1]] }),
          ],
        },
        422,
        ['/items/0/dependsOn/1', '/items/2/dependsOn/0'],
      );
    });

    test('a key used with another body, whatever else is new', async () => {
      await ids([item('a', { key: 'taken-1' }), item('b', { key: 'taken-2' })]);
      await refused(
        {
          items: [
            item('new'),
            item('a', { key: 'taken-1', payload: 1 }),
            item('b', { key: 'taken-2', priority: 'high' }),
            item('c', { key: 'free' }),
          ],
        },
        422,
        ['/items/1/key', '/items/2/key'],
      );
    });
  });

  test('two at once with the same keys in another order make each run once', async () => {
    const list = Array.from({ length: 30 }, (_, n) => item(`r${n}`, { key: `race-${n}` }));
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => submit({ items: n % 2 ? list : list.toReversed() })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
    const [first, ...others] = answers.map(byRef);
    for (const one of others) expect(one).toEqual(first);
  });
});
