import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { completeRun, retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { plainSuccess } from '../../support/claims.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { settleLockedRuns } from '../../../src/store/runs/ends/settle-locked.ts';
import { eachTest, instanceOfTest, storeOfTest } from '../../support/of-test.ts';

/** What becomes of a callback run when a target's 202 comes after something else has happened to it. */
const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
let id: string;

beforeEach(async () => {
  const [accepted] = await instance.accept({ url: 'http://127.0.0.1:9/', completion: 'callback' });
  id = accepted?.id ?? '';
});

const run = async () => {
  const found = await store.database.run((db) => findRun(db, id, null));
  if (!found) throw new Error('it is not there');
  return found;
};
const claim = () =>
  store.rows(sql`UPDATE runs SET claimed_by = ${instance.id}, claimed_at = now(), attempts = attempts + 1`);
const complete = (attempt: number, status: 'succeeded' | 'failed') =>
  completeRun(instance.deps, id, { attempt, status, workerId: null, error: null, result: null });

/** The 202 of an attempt, as its sender writes it down. */
async function accepted(attempt: number): Promise<boolean> {
  const at = Date.now();
  const success = plainSuccess({ runId: id, instanceId: instance.id, at });
  const settlement = {
    ...success.settlement,
    status: 'running' as const,
    leaseSeconds: 60,
    statusCode: 202,
    body: '',
  };
  const outcome = { ...success, attempt, latenessMs: null, settlement };
  const { settled } = await store.database.transaction((tx) => settleLockedRuns(tx, [outcome], 'wait'));
  return settled.has(id);
}

it('another attempt was claimed meanwhile: it runs, and reports count for the attempt that was accepted', async () => {
  await claim();
  await claim();
  expect(await accepted(1)).toBe(true);
  expect(await run()).toMatchObject({ status: 'running', attempts: 2 });
  expect(await complete(1, 'succeeded')).toMatchObject({ kind: 'done', run: { status: 'succeeded' } });
});

it('it was reported as failed and opened again meanwhile: that work is over, and another attempt follows', async () => {
  await claim();
  await complete(1, 'failed');
  expect(await retryRun(instance.deps, id)).toMatchObject({ kind: 'done', run: { status: 'pending' } });
  expect(await accepted(1)).toBe(false);
  expect(await run()).toMatchObject({ status: 'pending' });
  await claim();
  expect(await accepted(2)).toBe(true);
});
