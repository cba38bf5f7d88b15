import type { ServerResponse } from 'node:http';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cancelRun } from '../../../src/operations/runs/act-on-runs.ts';
import { startMaintenance, stopMaintenance } from '../../../src/operations/installation-changes.ts';
import { LIMIT_ROWS } from '../../../src/store/limits/limits.ts';
import { findNamed } from '../../../src/store/names/named-rows.ts';
import { readInstallation } from '../../../src/store/instances/installation-row.ts';
import { putLimitOf } from '../../support/named.ts';
import { receiverOfTest, storeOfTest, eachTest, instanceOfTest } from '../../support/of-test.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { createPullInstance } from '../../support/pulling.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ body }, response) => {
    open.set(body.runId, response);
    most = Math.max(most, open.size);
  }),
);
// Of two places one waits for a slot.
const narrow = eachTest(() => instanceOfTest(store, { concurrency: 1, concurrencyPerLane: 1 }));
const wide = eachTest(() => instanceOfTest(store));
/** Requests that the receiver has not answered, by run; the most there were at once. */
let open: Map<string, ServerResponse>;
let most: number;

beforeEach(() => {
  open = new Map();
  most = 0;
});
afterEach(() => {
  for (const response of open.values()) response.end('{}');
});

const limitTo = (maxRunning: number) => putLimitOf(narrow.deps, maxRunning);
const state = () => store.database.run((db) => findNamed(db, LIMIT_ROWS, { id: 'l' }));
const hold = async () => {
  await startMaintenance(store.database, { mode: 'holds', until: null, reason: null });
  await tell();
};
const goOn = async () => {
  await stopMaintenance(store.database);
  await tell();
};
const tell = async () => {
  const found = await store.database.run(readInstallation);
  for (const { installation } of [narrow, wide]) installation.learn(found);
};
const accept = async (instance: TestInstance, priority: 'high' | 'normal' = 'normal') => {
  const [run] = await instance.accept({ url: receiver.url, limit: 'l', priority });
  return run?.id ?? '';
};
/** Runs that hold a place and are not claimed; so many passes of admission have been made before. */
const places = async () =>
  (await store.rows<{ id: string }>(sql`SELECT id FROM runs WHERE admitted_at IS NOT NULL AND claimed_by IS NULL`)).map(
    ({ id }) => id,
  );
const passes = (instance: TestInstance, count: number) => {
  const seen = () => instance.events.filter(({ type }) => type === 'admissionPassed').length;
  const wanted = seen() + count;
  return until(() => {
    instance.pipeline.wake.admission();
    return seen() >= wanted || null;
  });
};
function answer(runId: string): void {
  const response = open.get(runId);
  open.delete(runId);
  response?.end('{}');
}

it('a place that maintenance holds back with its run is neither lost nor leaked, and urgent runs go first afterwards', async () => {
  const [one, other] = [narrow, wide];
  await limitTo(2);
  // Recorded before the instance looks for work: it finds both. Of one millisecond, either may be the first.
  const both = [await accept(one), await accept(one)];
  await one.start();
  await until(() => (open.size === 1 && one.pipeline.dispatcher.claimed() === 2) || null);
  const [first = ''] = open.keys();
  const second = both.find((id) => id !== first) ?? '';
  await hold();
  // The one that waited for a slot is handed back, and keeps its place.
  expect(await until(async () => ((await places()).length === 1 ? places() : null))).toEqual([second]);
  await other.start();
  const third = await accept(other);
  answer(first);
  await until(async () => ((await state())?.running === 0 ? true : null));
  const urgent = await accept(other, 'high');
  // The place of what ended, and that of what is cancelled, are free; none is given meanwhile.
  await cancelRun(one.deps, second);
  for (const instance of [one, other]) await passes(instance, 2);
  expect(await places()).toEqual([]);
  expect(await state()).toMatchObject({ running: 0, waiting: 2 });
  expect(receiver.arrivals).toHaveLength(1);

  await limitTo(1);
  await goOn();
  await until(() => open.has(urgent) || null);
  expect([...open.keys()]).toEqual([urgent]);
  answer(urgent);
  await until(() => open.has(third) || null);
  answer(third);
  await until(async () => {
    const found = await state();
    return found?.running === 0 && found.waiting === 0 ? true : null;
  });
  expect([most, receiver.arrivals.length]).toEqual([1, 3]);
  expect(await store.rows(sql`SELECT FROM runs`)).toEqual([]);
});

it('a worker that asks during a hold gets no run, and its queue keeps no place from other runs', async () => {
  const one = narrow;
  const pulling = await createPullInstance(store.url);
  await limitTo(1);
  await hold();
  const [pulled] = await pulling.accept({ queue: 'work', limit: 'l' });
  expect(await pulling.claim()).toEqual([]);
  await one.start();
  await passes(one, 2);
  expect(await places()).toEqual([]);
  const urgent = await accept(one, 'high');
  await goOn();
  await until(() => open.has(urgent) || null);
  expect(await pulling.claim()).toEqual([]);
  answer(urgent);
  const [got] = await pulling.claim({ waitSeconds: 60 });
  expect(got?.run.id).toBe(pulled);
  expect(await state()).toMatchObject({ running: 1, waiting: 0 });
  await pulling.stop();
});
