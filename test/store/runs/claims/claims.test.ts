import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claimReadyRuns } from '../../../../src/store/runs/claims/claims.ts';
import { countNow, needsCounting } from '../../../support/postgres/counted.ts';
import { runIdAt } from '../../../support/pending-runs.ts';
import { type Store, createInstance, createStore } from '../../../support/pipeline.ts';

let store: Store;

beforeEach(async () => {
  store = await createStore();
});

afterEach(() => store.drop());

const LANES = 8;

async function insertRuns(count: number, dueInSeconds = 0): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://host-' || (i % ${LANES}), 1, at,
      ${dueInSeconds === 0}, 0, at, at
    FROM generate_series(1, ${count}) AS i,
      LATERAL (SELECT date_trunc('second', now()) + make_interval(secs => ${dueInSeconds}) AS at) AS t`);
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
  const claim = () =>
    store.database.run((db) =>
      claimReadyRuns(db, {
        instanceId: instance.id,
        limit: 1_000,
        freeByLane: new Map(),
        freePerLane: 5,
        targetTypes: ['http'],
      }),
    );
  const CLAIMS = 5;
  for (let n = 0; n < CLAIMS; n += 1) expect(await claim()).toHaveLength(5 * LANES);
  const read = (await rowsRead()) - before;
  // Each where it waits and once more where it is written, and what earlier claims have left in the index.
  expect(read).toBeGreaterThanOrEqual(CLAIMS * 5 * LANES);
  expect(read).toBeLessThan(10 * CLAIMS * 5 * LANES);
  await instance.stop();
});
