import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import type { Priority } from '../../../src/core/schedules/schedule.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { leaveRuns } from '../../support/pending-runs.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);

it('targets that take requests and never answer leave slots for the others', async () => {
  const instance = await instanceOfTest(store, { concurrency: 256, concurrencyPerLane: 64 });
  const silent = await Promise.all([1, 2, 3, 4, 5].map(() => receiverOfTest(() => undefined)));
  const hanging = () => silent.reduce((sum, { arrivals }) => sum + arrivals.length, 0);
  for (const [index, { url }] of silent.entries()) {
    await instance.put(`silent-${index}`, { url, timeoutSeconds: 3600 });
    await leaveRuns(store, `silent-${index}`, { count: 200, lateBySeconds: 1000 });
  }
  await instance.start();
  // Of half of the slots, each takes at most three times what it leaves to the next one.
  await until(() => (hanging() >= 5 * 24 ? true : null));
  const quick = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(() => receiverOfTest()));
  for (const [index, { url }] of quick.entries()) {
    await instance.put(`quick-${index}`, { url });
    await leaveRuns(store, `quick-${index}`, { count: 30 });
  }
  instance.pipeline.dispatcher.wake();
  await Promise.all(quick.map((receiver) => receiver.arrived(30)));
  expect(hanging()).toBeLessThanOrEqual(128);
  // What they have due beyond their slots is left to other instances.
  await until(async () => {
    const [row] = await store.rows<{ claimed: number }>(sql`SELECT count(*)::int AS claimed FROM runs
      WHERE status = 'pending' AND claimed_by IS NOT NULL AND schedule_id LIKE 'silent-%'`);
    return (row?.claimed ?? Infinity) < 256 || null;
  });
});

it('runs that wait for the one slot go by priority, in whatever order they were recorded', async () => {
  const instance = await instanceOfTest(store, { concurrency: 1, concurrencyPerLane: 12 });
  const receiver = await receiverOfTest();
  const priorities: Priority[] = ['low', 'normal', 'high'];
  const ids = Array.from({ length: 12 }, (_, index) => index);
  for (const index of ids) {
    const priority = priorities[index % 3] ?? 'normal';
    await instance.put(`${priority}-${index}`, {
      url: receiver.url,
      priority,
      cron: null,
      everySeconds: 3600,
    });
  }
  await store.rows(sql`UPDATE schedules SET next_fire_at = next_fire_at - interval '1 hour',
    next_occurrence_at = next_occurrence_at - interval '1 hour', created_at = created_at - interval '1 hour'`);
  await instance.start();
  const arrivals = await receiver.arrived(12);
  expect(arrivals.map(({ body }) => body.scheduleId.replace(/-.*/, ''))).toEqual([
    ...new Array<string>(4).fill('high'),
    ...new Array<string>(4).fill('normal'),
    ...new Array<string>(4).fill('low'),
  ]);
  const recorded = instance.events.filter((event) => event.type === 'intentsRecorded' && event.fires > 0);
  expect(recorded).toMatchObject([{ fires: 12, claimed: 12 }]);
});
