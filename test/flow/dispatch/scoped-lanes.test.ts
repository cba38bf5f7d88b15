import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { parseScopeShares } from '../../../src/core/access/scope.ts';
import { backfill } from '../../../src/operations/runs/backfill.ts';
import { retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { namersOf } from '../../../src/store/names/named-rows.ts';
import { storeOfTest, eachTest, instanceOfTest, receiverOfTest } from '../../support/of-test.ts';
import { leaveRuns } from '../../support/pending-runs.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';

const [SHARES] = parseScopeShares('billing.,ops.');
const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store, { scopeShares: SHARES, concurrency: 32 }));

/** The scope at the end of the lane of each run, by trigger; of one-off runs by their key. */
async function scopes(): Promise<Record<string, string>> {
  const rows = await store.rows<{ what: string; lane: string }>(
    sql`SELECT DISTINCT coalesce(key, trigger) AS what, lane FROM all_runs ORDER BY 1`,
  );
  return Object.fromEntries(rows.map(({ what, lane }) => [what, lane.split(' ')[2] ?? 'none']));
}

it('each run of a schedule has the lane of its scope, whoever asked for it; a one-off run by its key', async () => {
  const { url } = receiver;
  await instance.put('billing.day', { url, cron: null, everySeconds: 3600 });
  await instance.put('billing.next', {
    url,
    cron: null,
    after: { scheduleId: 'billing.day', on: ['succeeded'] },
  });
  await store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at - interval '1 hour',
    next_occurrence_at = next_occurrence_at - interval '1 hour', created_at = created_at - interval '3 hours' WHERE id = 'billing.day'`);
  await instance.start();
  await receiver.arrived(2);
  const { id } = await instance.fire('billing.day');
  const to = Date.now() - 3_600_000;
  await backfill(instance.deps, { scheduleId: 'billing.day', from: to - 7_200_000, to, limit: 1, as: 'now' });
  await instance.accept({ url, key: 'ops.one' }, { url, key: 'nobody' }, { queue: 'q', key: 'ops.pulled' });
  expect(await scopes()).toEqual({
    ...{ schedule: '@billing.', after: '@billing.', manual: '@billing.', backfill: '@billing.' },
    ...{ 'ops.one': '@ops.', nobody: 'none', 'ops.pulled': 'none' },
  });
  await until(async () => (await store.rows(sql`SELECT FROM history WHERE id = ${id}`)).length > 0 || null);
  await store.rows(sql`UPDATE history SET status = 'failed', lane = 'http http://before' WHERE id = ${id}`);
  await retryRun(instance.deps, id);
  expect(await scopes()).toMatchObject({ manual: '@billing.' });
});

it('a connection is still named by the open runs of a scope', async () => {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, attempts, created_at, updated_at)
    SELECT gen_random_uuid(), now(), gen_random_uuid(), 1, '', 'api', 'pending', lane, 1, now(), true, 0, now(), now()
    FROM unnest(ARRAY['http connection crm @ops.', 'http connection crm', 'http connection crm2 @ops.']) AS lane`);
  const named = await store.database.run((db) =>
    namersOf(db, { table: 'connections', id: 'crm', which: 'all', scope: null }, 10),
  );
  expect(named.runs).toHaveLength(2);
});

it(
  'runs of a scope are sent beside ten thousand of another to the same host, which were due before',
  { tags: [ATTACK] },
  async () => {
    const { url } = receiver;
    await instance.put('billing.many', { url });
    await instance.put('ops.few', { url });
    await leaveRuns(store, 'billing.many', { count: 10_000, lateBySeconds: 100 });
    await leaveRuns(store, 'ops.few', { count: 20 });
    await store.rows(sql`UPDATE runs SET lane = lane || ' @' || split_part(schedule_id, '.', 1) || '.'`);
    await instance.start();
    const few = await until(() => {
      const arrived = receiver.arrivals.map(({ body }) => body.scheduleId);
      return arrived.filter((id) => id === 'ops.few').length === 20 ? arrived : null;
    });
    expect(few.length).toBeLessThan(2_000);
  },
);
