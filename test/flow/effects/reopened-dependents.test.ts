import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { cancelRun, completeRun, retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { heldTransaction } from '../../support/pending-runs.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { applyAll, applyNext } from '../../support/effects.ts';
import { eachTest, instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import type { AskedRun } from '../../support/pipeline.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));

/** By ref. */
async function graph(asked: Record<string, string[]>, more: Partial<AskedRun> = {}) {
  const refs = Object.keys(asked);
  const runs = await instance.accept(
    ...refs.map((ref) => ({ ref, queue: 'q', key: ref, dependsOn: asked[ref] ?? [], ...more })),
  );
  return Object.fromEntries(refs.map((ref, index) => [ref, runs[index]?.id ?? '']));
}
const end = async (id: string | undefined, status: 'succeeded' | 'failed') => {
  await store.rows(
    sql`UPDATE runs SET status = 'running', attempts = 1, handoff_started_at = now() WHERE id = ${id}::uuid`,
  );
  const word = { status, error: null, result: null, attempt: null, workerId: null };
  expect(await completeRun(instance.deps, id ?? '', word)).toMatchObject({ kind: 'done' });
  await applyAll(store);
};
const retry = async (id: string | undefined, scope: string[] | null = null) => {
  expect(await retryRun({ ...instance.deps, scope }, id ?? '', { dependents: true })).toMatchObject({
    kind: 'done',
  });
  await applyAll(store);
};
async function statuses(ids: Record<string, string>): Promise<Record<string, string | undefined>> {
  const found = await Promise.all(
    Object.entries(ids).map(async ([ref, id]) => {
      const run = await store.database.run((db) => findRun(db, id, null));
      return [ref, run?.status] as const;
    }),
  );
  return Object.fromEntries(found);
}

it('with a run is opened again what failed for want of it, down the graph, and it waits again', async () => {
  const runs = await graph({ a: [], b: ['a'], c: ['b', 'a'], d: ['c'] });
  await end(runs['a'], 'failed');
  expect(await statuses(runs)).toEqual({ a: 'failed', b: 'failed', c: 'failed', d: 'failed' });
  await retry(runs['a']);
  expect(await statuses(runs)).toEqual({ a: 'pending', b: 'waiting', c: 'waiting', d: 'waiting' });
  await end(runs['a'], 'succeeded');
  expect(await statuses(runs)).toEqual({ a: 'succeeded', b: 'pending', c: 'waiting', d: 'waiting' });
  await end(runs['b'], 'failed');
  expect(await statuses(runs)).toEqual({ a: 'succeeded', b: 'failed', c: 'failed', d: 'failed' });
  await retry(runs['b']);
  for (const ref of ['b', 'c', 'd']) await end(runs[ref], 'succeeded');
  expect(await statuses(runs)).toEqual({ a: 'succeeded', b: 'succeeded', c: 'succeeded', d: 'succeeded' });
});

it('what lacks another run too stays as it is until that one is retried; what ended otherwise is left alone', async () => {
  const runs = await graph({ a: [], x: [], both: ['a', 'x'], below: ['both'], gone: ['a'], own: [] });
  await cancelRun(instance.deps, runs['gone'] ?? '');
  await end(runs['a'], 'failed');
  await end(runs['x'], 'failed');
  await retry(runs['a']);
  expect(await statuses(runs)).toEqual({
    ...{ a: 'pending', x: 'failed', both: 'failed', below: 'failed', gone: 'cancelled', own: 'pending' },
  });
  await end(runs['a'], 'succeeded');
  await retry(runs['x']);
  expect(await statuses(runs)).toMatchObject({
    a: 'succeeded',
    x: 'pending',
    both: 'waiting',
    below: 'waiting',
  });
  await end(runs['x'], 'succeeded');
  expect(await statuses(runs)).toMatchObject({ both: 'pending', below: 'waiting' });
});

it('a run that has succeeded by the time that its dependents are looked at lets them go at once', async () => {
  const runs = await graph({ a: [], b: ['a'] });
  await end(runs['a'], 'failed');
  await retryRun(instance.deps, runs['a'] ?? '', { dependents: true });
  await store.rows(sql`UPDATE runs SET status = 'running', attempts = 1 WHERE id = ${runs['a']}::uuid`);
  const word = { status: 'succeeded', error: null, result: null, attempt: null, workerId: null } as const;
  await completeRun(instance.deps, runs['a'] ?? '', word);
  await applyAll(store);
  expect(await statuses(runs)).toEqual({ a: 'succeeded', b: 'pending' });
});

it('a caller with a scope opens only runs of its own', async () => {
  const runs = await graph({
    'ops.a': [],
    'ops.b': ['ops.a'],
    'web.c': ['ops.a'],
    'ops.d': ['ops.b', 'web.c'],
  });
  await end(runs['ops.a'], 'failed');
  await retry(runs['ops.a'], ['ops.']);
  expect(await statuses(runs)).toEqual({
    ...{ 'ops.a': 'pending', 'ops.b': 'waiting', 'web.c': 'failed', 'ops.d': 'failed' },
  });
});

it('without being asked for, a retry leaves dependents as they are', async () => {
  const runs = await graph({ a: [], b: ['a'] });
  await end(runs['a'], 'failed');
  await retryRun(instance.deps, runs['a'] ?? '');
  await applyAll(store);
  expect(await statuses(runs)).toEqual({ a: 'pending', b: 'failed' });
});

it('a run that another transaction has locked is opened once that has ended, and holds up no other', async () => {
  const runs = await graph({ a: [], b: ['a'], c: ['a'] });
  await end(runs['a'], 'failed');
  await retryRun(instance.deps, runs['a'] ?? '', { dependents: true });
  const letGo = await heldTransaction(store.database, (tx) =>
    tx.execute(sql`SELECT 1 FROM history WHERE id = ${runs['b']}::uuid FOR UPDATE`),
  );
  const { unfinished } = await store.database.transaction((tx) => applyNext(tx));
  expect(unfinished.map(({ kind }) => kind)).toEqual(['reopens']);
  expect(await statuses(runs)).toEqual({ a: 'pending', b: 'failed', c: 'waiting' });
  await letGo();
  await applyAll(store);
  expect(await statuses(runs)).toEqual({ a: 'pending', b: 'waiting', c: 'waiting' });
});

it('of very many dependents each transaction opens a bounded number', async () => {
  const { a = '', b = '' } = await graph({ a: [], b: ['a'] });
  await end(a, 'failed');
  const more = Array.from({ length: 450 }, () => randomRunId(Date.now()));
  await store.rows(sql`INSERT INTO history SELECT (jsonb_populate_record(h, jsonb_build_object('id', m.id, 'key', NULL))).*
    FROM history h, unnest(${`{${more.join(',')}}`}::uuid[]) AS m(id) WHERE h.id = ${b}::uuid`);
  await store.rows(sql`INSERT INTO run_dependencies (run_id, depends_on, position, counted_at)
    SELECT id, ${a}::uuid, 0, now() FROM unnest(${`{${more.join(',')}}`}::uuid[]) AS m(id)`);
  await retryRun(instance.deps, a, { dependents: true });
  const opened: number[] = [];
  for (;;) {
    const { done, begun, reopened } = await store.database.transaction((tx) => applyNext(tx));
    if (done.length + begun.length === 0) break;
    opened.push(reopened.length);
  }
  expect(opened).toEqual([100, 100, 100, 100, 51]);
  const [row] = await store.rows<{ count: number }>(
    sql`SELECT count(*)::int AS count FROM runs WHERE status = 'waiting' AND open_dependencies = 1`,
  );
  expect(row?.count).toBe(451);
});
