import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { settlePlainIfClaimed } from '../../../../src/store/runs/ends/settle-plain.ts';
import { instanceOfTest, storeOfTest } from '../../../support/of-test.ts';
import { leaveRuns, runsOf } from '../../../support/pending-runs.ts';
import type { Store, TestInstance } from '../../../support/pipeline.ts';
import { plainSuccess } from '../../../support/plain-success.ts';

let store: Store;
let instance: TestInstance;
let runId: string;
beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
  await instance.put('hourly', { url: 'http://127.0.0.1:1' });
  await leaveRuns(store, 'hourly', { claimedBy: instance.id });
  const [run] = await runsOf(store);
  runId = run?.id ?? '';
});

const settle = () =>
  store.database.run((db) =>
    settlePlainIfClaimed(db, [plainSuccess({ runId, instanceId: instance.id, at: Date.now() })]),
  );

describe('a plain success', () => {
  it('ends the run that it still claims: its row moves to history', async () => {
    const { settled } = await settle();
    expect(settled(runId)).toBe(true);
    expect(await runsOf(store)).toMatchObject([{ id: runId, status: 'succeeded' }]);
    expect(await store.rows(sql`SELECT FROM runs`)).toEqual([]);
  });

  it.each([
    ['another instance has claimed it', sql`claimed_by = ${randomUUID()}`],
    ['no instance claims it', sql`claimed_by = NULL, claimed_at = NULL`],
    ['it was claimed for another attempt', sql`attempts = 2`],
    ['recovery has found it lost', sql`lost_at = clock_timestamp()`],
    ['its target is to be asked about an earlier attempt', sql`in_doubt_until = clock_timestamp()`],
    ['an earlier attempt may have arrived', sql`attempt_in_doubt = 1`],
    ['its log holds an attempt already', sql`attempt_log = '[]'`],
    ['it runs, since its completion is awaited', sql`status = 'running'`],
    ['it waits', sql`status = 'waiting'`],
  ])('leaves the run as it is where %s', async (_, change) => {
    await store.rows(sql`UPDATE runs SET ${change} WHERE id = ${runId}`);
    const before = await store.rows(sql`SELECT * FROM runs`);
    const { settled } = await settle();
    expect(settled(runId)).toBe(false);
    expect(await store.rows(sql`SELECT * FROM runs`)).toEqual(before);
    expect(await store.rows(sql`SELECT FROM history`)).toEqual([]);
  });

  it('for a run that has ended writes nothing a second time', async () => {
    await settle();
    const before = await store.rows(sql`SELECT * FROM history`);
    const { settled } = await settle();
    expect(settled(runId)).toBe(false);
    expect(await store.rows(sql`SELECT * FROM history`)).toEqual(before);
  });
});
