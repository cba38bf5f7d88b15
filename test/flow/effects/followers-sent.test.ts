import { expect, it } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { runsOf } from '../../support/pending-runs.ts';
import { createInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const FOLLOWS = {
  cron: null,
  after: { scheduleId: 'first', on: ['succeeded'] },
} satisfies Partial<Definition>;

it('a follower is sent by the instance that records it, though its search for runs to claim takes for ever', async () => {
  const store = await storeOfTest();
  const receiver = await receiverOfTest();
  const search = Promise.withResolvers<never[]>();
  const { database } = store;
  const searching: Database = {
    ...database,
    run: (work, limitMs) =>
      work.toString().includes('claimReadyRuns') ? (search.promise as Promise<never>) : database.run(work, limitMs),
  };
  const instance = await createInstance({ ...store, database: searching });
  try {
    await instance.put('first', { url: `${receiver.url}/first`, cron: '* * * * * *' });
    await instance.put('second', { url: `${receiver.url}/second`, ...FOLLOWS });
    await instance.start();
    await until(() => Promise.resolve(receiver.arrivals.some(({ path }) => path === '/second') ? true : null));
    expect(await runsOf(store, 'second')).not.toEqual([]);
  } finally {
    search.resolve([]);
    await instance.stop();
  }
});

it('a follower for which there is no room is sent once there is', async () => {
  const store = await storeOfTest();
  const held: (() => void)[] = [];
  const receiver = await receiverOfTest(({ path }, response) => {
    if (path === '/held') held.push(() => response.end('{}'));
    else response.end('{}');
  });
  const instance = await instanceOfTest(store, { concurrency: 1, concurrencyPerLane: 1 });
  await instance.put('held', { url: `${receiver.url}/held` });
  await instance.put('first', { url: `${receiver.url}/first` });
  await instance.put('second', { url: `${receiver.url}/second`, ...FOLLOWS });
  await instance.start();
  await instance.fire('first');
  await instance.fire('held');
  await receiver.arrived(2);
  await until(async () => ((await runsOf(store, 'second')).length > 0 ? true : null));
  for (const answer of held.splice(0)) answer();
  await until(() => Promise.resolve(receiver.arrivals.some(({ path }) => path === '/second') ? true : null));
});
