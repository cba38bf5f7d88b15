import { randomUUID } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { claimIfReady } from '../../../../src/store/runs/claims/claim-if-ready.ts';
import { storeOfTest } from '../../../support/of-test.ts';
import { leaveRuns, lockRuns, runsOf } from '../../../support/pending-runs.ts';
import { type Store, createInstance } from '../../../support/pipeline.ts';

async function offeredRun(store: Store) {
  const instance = await createInstance(store);
  await instance.put('one', { url: 'http://127.0.0.1:9/' });
  await leaveRuns(store, 'one');
  const [run] = await runsOf(store, 'one');
  const claim = (instanceId = instance.id, targetTypes: readonly string[] = ['http']) =>
    store.database.run((db) =>
      claimIfReady(db, [run?.id ?? ''], { instanceId, targetTypes: [...targetTypes] }),
    );
  return { instance, claim };
}

it('a run that is ready is claimed by its id, once', async () => {
  const store = await storeOfTest();
  const { instance, claim } = await offeredRun(store);
  expect(await claim()).toMatchObject([
    { scheduleId: 'one', instanceId: instance.id, attempt: 1, trigger: 'schedule', ofDeleted: false },
  ]);
  expect(await claim()).toEqual([]);
  expect(await runsOf(store, 'one')).toMatchObject([{ attempts: 1, claimed_by: instance.id }]);
});

const NOT_CLAIMED: Record<string, SQL> = {
  'that another instance has claimed': sql`UPDATE runs SET claimed_by = ${randomUUID()}, claimed_at = now()`,
  'that is not due': sql`UPDATE runs SET ready = false, due_at = now() + interval '1 hour'`,
  'that waits': sql`UPDATE runs SET status = 'waiting', ready = false`,
  'while maintenance holds runs': sql`UPDATE installation SET mode = 'holds', mode_since = now()`,
  'by an instance that was declared dead': sql`UPDATE instances SET died_at = now()`,
};

it.each(Object.entries(NOT_CLAIMED))('none is claimed %s', async (_, change) => {
  const store = await storeOfTest();
  const { claim } = await offeredRun(store);
  await store.rows(change);
  expect(await claim()).toEqual([]);
});

it('none is claimed that this version cannot send, or that another transaction has locked', async () => {
  const store = await storeOfTest();
  const { instance, claim } = await offeredRun(store);
  expect(await claim(instance.id, ['command'])).toEqual([]);
  const unlock = await lockRuns(store, 'one');
  expect(await claim()).toEqual([]);
  await unlock();
  expect(await claim()).toHaveLength(1);
});
