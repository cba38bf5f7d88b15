import type { ServerResponse } from 'node:http';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { completeRun } from '../../../src/operations/runs/act-on-runs.ts';
import { putLimitOf } from '../../support/named.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { type PullInstance, createPullInstance } from '../../support/pulling.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(() => receiverOfTest((_, response) => void open.push(response)));
const instance = eachTest(() => instanceOfTest(store, { wakeWorkers: () => pulling.queues.announce() }));
let pulling: PullInstance;
let open: ServerResponse[];

beforeEach(async () => {
  open = [];
  pulling = await createPullInstance(store.url);
  await instance.start();
});

afterEach(async () => {
  for (const response of open) response.end('{}');
  await pulling.stop();
});

const limitTo = (maxRunning: number) => putLimitOf(instance.deps, maxRunning);
const complete = (id: string) =>
  completeRun(instance.deps, id, {
    ...{ attempt: null, workerId: 'a worker', status: 'succeeded', error: null, result: null },
  });
const claim = async (waitSeconds = 0) => (await pulling.claim({ max: 100, waitSeconds })).map(({ run }) => run.id);
const pulled = { queue: 'work', limit: 'l' };

it('workers get no more runs of a limit than it has places for, and the next as soon as one ends', async () => {
  await limitTo(2);
  const ids = (await instance.accept(pulled, pulled, pulled, { ...pulled, priority: 'high' })).map(({ id }) => id);
  const first = await claim();
  expect(first).toEqual([ids[3], expect.toSatisfy((id) => ids.includes(String(id)))]);
  expect(await claim()).toEqual([]);
  const waiting = claim(60);
  await complete(first[0] ?? '');
  const [third = ''] = await waiting;
  expect(ids).toContain(third);
  expect(first).not.toContain(third);
});

it('places are shared with runs that are sent, in one order', async () => {
  await limitTo(1);
  const [sent] = await instance.accept({ url: receiver.url, limit: 'l' });
  await receiver.arrived(1);
  const waiting = claim(60);
  // The worker's asking is written down: its queue has its turn.
  await until(async () => ((await store.rows(sql`SELECT 1 FROM queue_workers`)).length > 0 ? true : null));
  const late = { url: receiver.url, limit: 'l', priority: 'low' } as const;
  const [, byWorker] = await instance.accept(late, pulled);
  open.shift()?.end('{}');
  expect(await waiting).toEqual([byWorker?.id]);
  expect(receiver.arrivals.map(({ body }) => body.runId)).toEqual([sent?.id]);
  await complete(byWorker?.id ?? '');
  await receiver.arrived(2);
});

it('a queue that no worker asks for any more keeps no places from others, and gets some when a worker asks again', async () => {
  await limitTo(1);
  await instance.accept({ ...pulled, priority: 'high' });
  await store.rows(sql`INSERT INTO queue_workers VALUES ('work', 'gone', now())`);
  instance.pipeline.wake.admission();
  await until(async () => ((await store.rows(sql`SELECT 1 FROM runs WHERE ready`)).length > 0 ? true : null));
  await instance.accept({ url: receiver.url, limit: 'l' });
  await store.rows(sql`UPDATE queue_workers SET seen_at = now() - interval '2 minutes'`);
  instance.pipeline.wake.admission();
  await receiver.arrived(1);
  expect(await claim()).toEqual([]);
  open.shift()?.end('{}');
  expect(await claim(60)).toHaveLength(1);
});
