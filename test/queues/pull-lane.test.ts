import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import type { Store, TestInstance } from '../support/pipeline.ts';
import type { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

let store: Store;
let instance: TestInstance;
let receiver: Receiver;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  receiver = await receiverOfTest();
});

it('pull runs are recorded and neither claimed nor sent by an instance, however they fire', async () => {
  const timing = { cron: null, everySeconds: 3600 };
  await instance.put('pulled', { url: '', target: { type: 'pull', queue: 'q' }, ...timing });
  await instance.put('sent', { url: receiver.url, ...timing });
  await store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at - interval '1 hour',
    next_occurrence_at = next_occurrence_at - interval '1 hour', created_at = created_at - interval '1 hour'`);
  await instance.start();
  for (const id of ['pulled', 'sent']) await instance.fire(id);
  await receiver.arrived(2);
  const pulled = await until(async () => {
    const runs = await store.rows<{
      schedule_id: string;
      status: string;
    }>(sql`SELECT schedule_id, trigger, status, lane,
      claimed_by, attempts FROM all_runs ORDER BY trigger`);
    const sent = runs.filter((run) => run.schedule_id === 'sent');
    if (runs.length < 4 || sent.some(({ status }) => status === 'pending')) return null;
    return runs.filter((run) => run.schedule_id === 'pulled');
  });
  const untouched = { status: 'pending', lane: 'pull q', claimed_by: null, attempts: 0 };
  expect(pulled).toMatchObject([
    { trigger: 'manual', ...untouched },
    { trigger: 'schedule', ...untouched },
  ]);
});
