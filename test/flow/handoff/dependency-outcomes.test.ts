import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(() => receiverOfTest((_, response) => response.end('{"executionId":"e-1"}')));
let instance: TestInstance;
/** Works that read how dependencies ended; the first so many of them fail. */
let reads: number;
let failing: number;

const WIDE = 60;

beforeEach(async () => {
  [reads, failing] = [0, 0];
  const database: Database = {
    ...store.database,
    run: (work, limitMs) => {
      if (!(new Error().stack ?? '').includes('/dependency-outcomes.ts')) return store.database.run(work, limitMs);
      reads += 1;
      if (reads <= failing) return Promise.reject(new Error('no'));
      return store.database.run(work, limitMs);
    },
  };
  instance = await instanceOfTest({ ...store, database }, { concurrency: 2 * WIDE, concurrencyPerLane: 2 * WIDE });
});

/** So many runs that depend on the same two; answers the ids of these. */
async function fanOut(): Promise<string[]> {
  const asks = (ref: string, dependsOn: string[] = []) => ({ ref, dependsOn, url: `${receiver.url}/${ref}` });
  const accepted = await instance.accept(
    asks('a'),
    asks('b'),
    ...Array.from({ length: WIDE }, (_, index) => asks(`of-${index}`, ['b', 'a'])),
  );
  return accepted.slice(0, 2).map(({ id }) => id);
}

const succeeded = () =>
  until(async () => {
    const rows = await store.rows<{ failures: number }>(sql`SELECT failures FROM all_runs WHERE status = 'succeeded'`);
    return rows.length === WIDE + 2 ? rows : null;
  });

function toldOf(): unknown[] {
  return receiver.arrivals
    .filter(({ path }) => path.startsWith('/of-'))
    .map(({ text }) =>
      (JSON.parse(text) as { dependencies: { runId: string; status: string }[] }).dependencies.map(
        ({ runId, status }) => [runId, status],
      ),
    );
}

it('attempts that begin together read how their dependencies ended together, and each gets its own', async () => {
  const [a = '', b = ''] = await fanOut();
  await instance.start();
  await succeeded();
  const own = [
    [b, 'succeeded'],
    [a, 'succeeded'],
  ];
  expect(toldOf()).toEqual(Array(WIDE).fill(own));
  // Two for all of them; some may have begun a moment later.
  expect(reads).toBeLessThan(WIDE / 4);
});

it('if these cannot be read, nothing is sent, no failure is counted, and all are sent once they can', async () => {
  failing = 3;
  await fanOut();
  await instance.start();
  const rows = await succeeded();
  expect(reads).toBeGreaterThan(3);
  expect(rows.every(({ failures }) => failures === 0)).toBe(true);
  expect(toldOf()).toHaveLength(WIDE);
});
