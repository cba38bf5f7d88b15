// @module-tag attack
// @module-tag long
import { sql } from 'drizzle-orm';
import { describe, expect, it } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { claimPullRuns } from '../../../src/store/queues/pull-claims.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { countRuns, leaveOpenRuns } from '../../support/open-runs.ts';
import { type TestInstance, createInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
const receiver = eachTest(receiverOfTest);

const put = (id: string, more: Partial<Definition> = {}) => instance.put(id, { url: `${receiver.url}/${id}`, ...more });
const QUEUE = { target: { type: 'pull', queue: 'q' } } as const;
const noneLeft = () => until(async () => ((await store.rows(sql`SELECT FROM backlogs`)).length === 0 ? true : null));
const abandonedBy = ({ events }: TestInstance) =>
  events.flatMap((event) => (event.type === 'runsAbandoned' ? event.count : []));

describe('a schedule with 1,200 open runs', () => {
  it('is deleted at once, and its runs are abandoned in slices, some by each instance', async () => {
    await put('gone', QUEUE);
    await leaveOpenRuns(store, 'gone', 700);
    await leaveOpenRuns(store, 'gone', 500, { trigger: 'manual' });
    expect(await instance.remove('gone')).toBe(true);
    expect(await store.rows(sql`SELECT FROM schedules`)).toEqual([]);
    expect(await countRuns(store, 'gone')).toEqual({ pending: 700, 'abandoned deleted': 500 });
    // A schedule that is created again is another one.
    await put('gone', QUEUE);
    await leaveOpenRuns(store, 'gone', 3);
    const other = await createInstance(store);
    await Promise.all([instance.pipeline.backlogs.start(), other.pipeline.backlogs.start()]);
    await noneLeft();
    await other.stop();
    expect(await countRuns(store, 'gone')).toEqual({ pending: 3, 'abandoned deleted': 1_200 });
    const counted = [...abandonedBy(instance), ...abandonedBy(other)];
    expect(counted.reduce((sum, count) => sum + count, 0)).toBe(1_200);
    expect(Math.max(...counted.slice(1))).toBeLessThanOrEqual(250);
  });

  it('has none of them sent any more, and they are in no other run’s way', async () => {
    await put('gone');
    await put('other');
    await leaveOpenRuns(store, 'gone', 1_200, { isDue: true });
    await instance.remove('gone');
    // No slice is done here: the dispatcher alone gets past them.
    await leaveOpenRuns(store, 'other', 3, { isDue: true });
    await instance.pipeline.settler.start();
    await instance.pipeline.dispatcher.start();
    await until(async () => ((await countRuns(store, 'other'))['succeeded'] === 3 ? true : null));
    expect(receiver.arrivals.filter(({ path }) => path === '/gone')).toEqual([]);
    await until(async () => ((await countRuns(store, 'gone'))['abandoned deleted'] === 1_200 ? true : null));
    expect(receiver.arrivals).toHaveLength(3);
    expect(instance.pipeline.dispatcher.claimed()).toBe(0);
  });

  it('has none of them sent that only come due now', async () => {
    await put('gone');
    await leaveOpenRuns(store, 'gone', 600);
    await instance.remove('gone');
    await store.rows(sql`UPDATE runs SET due_at = clock_timestamp()`);
    await instance.pipeline.settler.start();
    await instance.pipeline.dispatcher.start();
    await until(async () => ((await countRuns(store, 'gone'))['abandoned deleted'] === 600 ? true : null));
    expect(receiver.arrivals).toEqual([]);
  });

  it('has none of them pulled by a worker', async () => {
    await put('gone', QUEUE);
    await put('other', QUEUE);
    await leaveOpenRuns(store, 'gone', 700, { isDue: true });
    await instance.remove('gone');
    await leaveOpenRuns(store, 'other', 3, { isDue: true });
    const ask = { workerId: 'w', max: 10, leaseSeconds: 60, scope: null };
    const claim = { queue: 'q', instanceId: instance.id, asks: [ask] };
    const { given } = await store.database.transaction((tx) => claimPullRuns(tx, claim));
    expect(given.flat().map(({ run }) => run.scheduleId)).toEqual(['other', 'other', 'other']);
  });
});

it('a schedule with five hundred open runs is deleted with all of them', async () => {
  await put('gone', QUEUE);
  await leaveOpenRuns(store, 'gone', 500);
  await instance.remove('gone');
  expect(await countRuns(store, 'gone')).toEqual({ 'abandoned deleted': 500 });
  expect(await store.rows(sql`SELECT FROM backlogs`)).toEqual([]);
});
