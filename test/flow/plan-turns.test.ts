import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { parseScopeShares } from '../../src/core/access/scope.ts';
import { PlanTurns } from '../../src/flow/tick.ts';
import { lockDueSchedules } from '../../src/store/schedules/fire-locks.ts';
import { storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { ATTACK } from '../support/runner/attack.ts';

const [SHARES] = parseScopeShares('a.,b.,a.nested.');
const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

it('while one scope has more due than a batch takes, it has a quarter of one, and each other one its share', () => {
  const turns = new PlanTurns(SHARES, 500);
  expect(turns.limits()).toBeNull();
  turns.locked(ids('a.', 500), true);
  expect(turns.limits()).toEqual([
    { prefix: 'a.nested.', limit: 125 },
    { prefix: 'a.', limit: 125 },
    { prefix: 'b.', limit: 125 },
    { prefix: '', limit: 125 },
  ]);
  // Two have more now: they share that quarter.
  turns.locked([...ids('a.', 125), ...ids('b.', 125)], true);
  expect(turns.limits()?.map(({ limit }) => limit)).toEqual([125, 63, 63, 125]);
  turns.locked(ids('a.', 10), true);
  expect(turns.limits()).toBeNull();
});

it('without scopes the oldest are locked, whosever they are', () => {
  const turns = new PlanTurns([], 500);
  turns.locked(ids('a.', 500), true);
  expect(turns.limits()).toBeNull();
});

it('locks so many due schedules of each scope, the oldest first', { tags: [ATTACK] }, async () => {
  const store = await storeOfTest();
  const instance = await createInstance(store);
  const url = 'http://127.0.0.1:1';
  await instance.putMany([...ids('a.', 30), ...ids('a.nested.', 5), ...ids('b.', 5), ...ids('other-', 5)], {
    url,
  });
  await store.rows(
    sql`UPDATE schedules SET next_fire_at = clock_timestamp() - make_interval(secs => CASE WHEN id LIKE 'a.%' THEN 100 ELSE 1 END)`,
  );
  const request = { instanceId: instance.id, limit: 10, lockTtlSeconds: 100, walking: [] };
  const scopes = ['a.nested.', 'a.', 'b.', ''].map((prefix) => ({ prefix, limit: prefix === 'a.' ? 10 : 3 }));
  const due = await store.database.run((db) => lockDueSchedules(db, { ...request, scopes }));
  const counts = Map.groupBy(due.locked, ({ id }) => id.replace(/\d+$/, ''));
  expect([...counts].map(([prefix, some]) => [prefix, some.length]).sort()).toEqual([
    ...[
      ['a.', 10],
      ['a.nested.', 3],
      ['b.', 3],
      ['other-', 3],
    ],
  ]);
  expect(due.isFull).toBe(true);
  await instance.stop();
});
