import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { claimReadyRuns } from '../../../../src/store/runs/claims/claims.ts';
import type { ClaimedRun } from '../../../../src/store/runs/claims/claimed-run.ts';
import { claimOf, returnClaimsIfMine } from '../../../../src/store/runs/claims/held-claims.ts';
import { rowsOf } from '../../../../src/postgres/sql/rows.ts';
import { storeOfTest } from '../../../support/of-test.ts';
import { countNow, needsCounting } from '../../../support/postgres/counted.ts';
import { runIdAt } from '../../../support/pending-runs.ts';
import { type Store, createInstance } from '../../../support/pipeline.ts';

let store: Store;

beforeEach(async () => {
  store = await storeOfTest();
});

const LANES = 8;

async function insertRuns(count: number, dueInSeconds = 0, lanes = LANES): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://host-' || (i % ${lanes}::int), 1, at,
      ${dueInSeconds === 0}, 0, at, at
    FROM generate_series(1, ${count}) AS i,
      LATERAL (SELECT date_trunc('second', now()) + make_interval(secs => ${dueInSeconds}) AS at) AS t`);
}

function claimFor(instanceId: string, limit: number, freePerLane: number): Promise<ClaimedRun[]> {
  const request = {
    instanceId,
    limit,
    freeByLane: new Map<string, number>(),
    freePerLane,
    targetTypes: ['http'],
  };
  return store.database.run((db) => claimReadyRuns(db, request));
}

/** Rows that were read of the table, whatever by. */
async function rowsRead(): Promise<number> {
  await countNow(store.database);
  const [row] = await store.rows<{ read: number }>(sql`SELECT (seq_tup_read + (
      SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid))::int AS read
    FROM pg_stat_user_tables t WHERE relid = 'runs'::regclass`);
  return row?.read ?? NaN;
}

it('claims read only what they claim, neither the whole backlog nor later runs, also if the statistics know no ready run', async (context) => {
  await needsCounting(context, store.database);
  const instance = await createInstance(store);
  await insertRuns(1_000);
  await store.rows(sql`UPDATE runs SET claimed_by = ${randomUUID()}, claimed_at = now()`);
  // What is dead in the index is read, too, until it is cleaned up.
  await store.rows(sql`VACUUM ANALYZE runs`);
  await insertRuns(4_000);
  await insertRuns(4_000, 604_800);
  const before = await rowsRead();
  const CLAIMS = 5;
  for (let n = 0; n < CLAIMS; n += 1) expect(await claimFor(instance.id, 1_000, 5)).toHaveLength(5 * LANES);
  const read = (await rowsRead()) - before;
  // Each where it waits and once more where it is written, and what earlier claims have left in the index.
  expect(read).toBeGreaterThanOrEqual(CLAIMS * 5 * LANES);
  expect(read).toBeLessThan(10 * CLAIMS * 5 * LANES);
  await instance.stop();
});

it('a claim locks only what it claims, and reads a few runs of each lane, however many lanes have more', async (context) => {
  await needsCounting(context, store.database);
  const instance = await createInstance(store);
  await insertRuns(300 * 40, 0, 300);
  const before = await rowsRead();
  const runs = await claimFor(instance.id, 100, 40);
  const read = (await rowsRead()) - before;
  expect(runs).toHaveLength(100);
  // Where each lane begins, at most two runs of it, and what is claimed, a few times each.
  expect(read).toBeLessThan(300 * 4 + 100 * 10);
  // A row that was locked and not written still names its locker.
  expect(await store.rows(sql`SELECT FROM runs WHERE claimed_by IS NULL AND xmax <> 0`)).toEqual([]);
  await instance.stop();
});

it('a claim takes the runs behind those that others have locked', async () => {
  const instance = await createInstance(store);
  await insertRuns(20, 0, 2);
  const released = Promise.withResolvers<undefined>();
  const locked = Promise.withResolvers<string[]>();
  const holding = store.database.transaction(async (tx) => {
    const rows = await rowsOf<{ id: string }>(tx)(
      sql`SELECT id FROM runs ORDER BY lane, due_at LIMIT 6 FOR UPDATE`,
    );
    locked.resolve(rows.map(({ id }) => id));
    await released.promise;
  });
  const ids = new Set(await locked.promise);
  const runs = await claimFor(instance.id, 8, 4);
  expect(runs).toHaveLength(8);
  expect(runs.filter(({ id }) => ids.has(id))).toEqual([]);
  released.resolve(undefined);
  await holding;
  await instance.stop();
});

it('a first claim that goes back unsent was no attempt: the age of its run does not count from it', async () => {
  const instance = await createInstance(store);
  await insertRuns(2);
  await store.rows(
    sql`UPDATE runs SET attempts = 1, first_claimed_at = now() - interval '1 day' WHERE lane LIKE '%-1'`,
  );
  const runs = await claimFor(instance.id, 2, 1);
  await store.database.run((db) => returnClaimsIfMine(db, runs.map(claimOf)));
  const rows = await store.rows(
    sql`SELECT attempts, first_claimed_at < now() - interval '1 hour' AS had_begun FROM runs ORDER BY attempts`,
  );
  expect(rows).toEqual([
    { attempts: 1, had_begun: null },
    { attempts: 2, had_begun: true },
  ]);
  await instance.stop();
});
