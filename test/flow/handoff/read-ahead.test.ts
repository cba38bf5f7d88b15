import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { editionsDueWithin } from '../../../src/store/schedules/schedule-versions.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../../support/of-test.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
let instance: TestInstance;
/** Statements that read definitions. */
let reads: number;

beforeEach(async () => {
  reads = 0;
  const database: Database = {
    ...store.database,
    run: (work, limitMs) => {
      if ((new Error().stack ?? '').includes('/handoff-definitions.ts')) reads += 1;
      return store.database.run(work, limitMs);
    },
  };
  instance = await instanceOfTest({ ...store, database });
});

afterEach(() => instance.pipeline.readAhead.stop());

/** A schedule that is due so many seconds from now. */
async function dueIn(id: string, seconds: number): Promise<string> {
  const { uid } = await instance.put(id, { url: `${receiver.url}/${id}`, cron: '0 0 1 1 *' });
  await store.rows(
    sql`UPDATE schedules SET next_fire_at = clock_timestamp() + make_interval(secs => ${seconds}) WHERE uid = ${uid}`,
  );
  return uid;
}

const passes = () => instance.events.filter(({ type }) => type === 'definitionsReadAhead');
const succeeded = (count: number) =>
  until(async () => {
    const rows = await store.rows(sql`SELECT FROM history WHERE status = 'succeeded' AND trigger = 'manual'`);
    return rows.length === count ? rows : null;
  });

it('the definition of a schedule that is due soon is in memory before it fires; that of another is read when it fires', async () => {
  await dueIn('soon', 10);
  await dueIn('later', 3600);
  await instance.pipeline.readAhead.start();
  await until(() => (passes().length > 0 ? true : null));
  expect(passes()).toEqual([{ type: 'definitionsReadAhead', count: 1 }]);
  expect(reads).toBe(1);

  await instance.start();
  await instance.fire('soon');
  await succeeded(1);
  expect(reads).toBe(1);
  await instance.fire('later');
  await succeeded(2);
  expect(reads).toBe(2);
});

it('looks for enabled schedules whose runs are sent, the first due ones first; where too many are due, for none', async () => {
  const uids = [await dueIn('second', 9), await dueIn('first', 8)];
  await dueIn('due', -1);
  await dueIn('disabled', 8);
  await store.rows(sql`UPDATE schedules SET enabled = false WHERE id = 'disabled'`);
  await dueIn('pulled', 8);
  await store.rows(sql`UPDATE schedules SET lane = 'pull q' WHERE id = 'pulled'`);
  const within = (atMost: number) => store.database.run((db) => editionsDueWithin(db, { ms: 15_000, atMost }));
  const edition = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;
  const found = uids.map((scheduleUid) => ({ scheduleUid, scheduleVersion: 1, edition })).reverse();
  expect(await within(2)).toEqual(found);
  expect(await within(1)).toEqual([]);
});
