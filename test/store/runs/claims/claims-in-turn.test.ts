import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { type ClaimRequest, claimReadyRuns } from '../../../../src/store/runs/claims/claims.ts';
import { storeOfTest } from '../../../support/of-test.ts';
import { runIdAt } from '../../../support/pending-runs.ts';
import { type Store, createInstance } from '../../../support/pipeline.ts';
import { ATTACK } from '../../../support/runner/attack.ts';

let store: Store;

beforeEach(async () => {
  store = await storeOfTest();
});

/** Due so many seconds ago, in so many lanes of a scope. */
async function insertRuns(count: number, { scope = '', lanes = 1, secondsAgo = 0 }): Promise<void> {
  const suffix = scope === '' ? '' : ` @${scope}`;
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://host-' || (i % ${lanes}::int) || ${suffix}, 1,
      at, true, 0, at, at
    FROM generate_series(1, ${count}) AS i,
      LATERAL (SELECT date_trunc('second', now()) - make_interval(secs => ${secondsAgo}) AS at) AS t`);
}

const room = (prefix: string, given = {}) => ({
  ...{ prefix, weight: 1, free: 1_000, takesNewLanes: true },
  ...given,
});

/** How many of each scope were claimed. */
async function claimed(given: Partial<ClaimRequest>): Promise<Record<string, number>> {
  const instance = await createInstance(store);
  const request = {
    ...{ instanceId: instance.id, limit: 100, freeByLane: new Map<string, number>(), freePerLane: 100 },
    ...{ targetTypes: ['http'], scopes: [room('a.'), room('b.'), room('')] },
    ...given,
  };
  const runs = await store.database.run((db) => claimReadyRuns(db, request));
  await instance.stop();
  const counts = Object.groupBy(runs, ({ lane }) => lane.split(' @')[1] ?? 'rest');
  return Object.fromEntries(Object.entries(counts).map(([scope, some]) => [scope, some?.length ?? 0]));
}

it(
  'one statement claims of each scope by its weight, however much of another is due, and for how long',
  { tags: [ATTACK] },
  async () => {
    await insertRuns(2_000, { scope: 'a.', lanes: 200, secondsAgo: 600 });
    await insertRuns(200, { scope: 'b.' });
    await insertRuns(200, {});
    expect(await claimed({})).toEqual({ 'a.': 34, 'b.': 33, rest: 33 });
    expect(await claimed({ scopes: [room('a.'), room('b.', { weight: 2 }), room('')] })).toEqual({
      ...{ 'a.': 25, 'b.': 50, rest: 25 },
    });
  },
);

it('what one scope leaves is claimed of the others', async () => {
  await insertRuns(500, { scope: 'a.', lanes: 10, secondsAgo: 600 });
  await insertRuns(3, { scope: 'b.' });
  expect(await claimed({})).toEqual({ 'a.': 97, 'b.': 3 });
});

it('no more of a scope is claimed than it has room for, and nothing of lanes that are not named if it takes none', async () => {
  await insertRuns(50, { scope: 'a.', lanes: 5 });
  await insertRuns(50, { scope: 'b.', lanes: 5 });
  await insertRuns(50, {});
  const scopes = [room('a.', { free: 7 }), room('b.', { takesNewLanes: false }), room('', { free: 0 })];
  const freeByLane = new Map([['http http://host-1 @b.', 4]]);
  expect(await claimed({ scopes, freeByLane })).toEqual({ 'a.': 7, 'b.': 4 });
});

it('runs of a scope that is configured no longer belong to the rest', async () => {
  await insertRuns(50, { scope: 'gone.', secondsAgo: 60 });
  await insertRuns(50, {});
  expect(await claimed({ scopes: [room('a.'), room('', { free: 20 })] })).toEqual({ 'gone.': 20 });
});
