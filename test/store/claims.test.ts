import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claimPendingRuns } from '../../src/store/claims.ts';
import { type Store, createInstance, createStore } from '../support/pipeline.ts';

let store: Store;

beforeEach(async () => {
  store = await createStore();
});

afterEach(() => store.drop());

const LANES = 8;

async function insertRuns(count: number): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, attempts, created_at, updated_at)
    SELECT gen_random_uuid(), date_trunc('second', now()), gen_random_uuid(), 1, '', 'api', 'pending',
      'http http://host-' || (i % ${LANES}), 1, date_trunc('second', now()), 0, now(), now() FROM generate_series(1, ${count}) AS i`);
}

/** Rows that were read by way of the index of all open runs. */
async function readOfAllOpen(): Promise<number> {
  await store.rows(sql`SELECT pg_stat_force_next_flush()`);
  const [row] = await store.rows<{ read: number }>(sql`SELECT coalesce(sum(idx_tup_read), 0)::int AS read
    FROM pg_stat_user_indexes s JOIN pg_inherits i ON i.inhrelid = s.indexrelid WHERE i.inhparent = 'runs_open'::regclass`);
  return row?.read ?? NaN;
}

it('claims read what they claim, and not the whole backlog, also on a day that held none when it was analyzed', async () => {
  const instance = await createInstance(store);
  await insertRuns(1_000);
  await store.rows(sql`UPDATE runs SET status = 'succeeded', claimed_by = ${randomUUID()}`);
  await store.rows(sql`ANALYZE runs`);
  await insertRuns(4_000);
  const before = await readOfAllOpen();
  const claim = () =>
    store.database.run((db) =>
      claimPendingRuns(db, {
        instanceId: instance.id,
        limit: 1_000,
        freeByLane: new Map(),
        freePerLane: 5,
        targetTypes: ['http'],
        openSince: Date.now() - 3_600_000,
      }),
    );
  for (let n = 0; n < 5; n += 1) expect(await claim()).toHaveLength(5 * LANES);
  expect(await readOfAllOpen()).toBe(before);
  await instance.stop();
});
