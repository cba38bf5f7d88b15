// @module-tag attack
// @module-tag long
import { type SQL, sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { eachTest, FAR, instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import { applyAll, applyNext } from '../../support/effects.ts';
import { runIdAt } from '../../support/pending-runs.ts';
import { createInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const store = eachTest(() => storeOfTest(FAR));
const instance = eachTest(() => instanceOfTest(store));

beforeEach(async () => {
  for (const id of ['parent', 'other']) await put(id, { enabled: false });
  await follow('lone', 'other');
});

/** What one transaction may see to: pairs of an end and a follower; dependents. */
const MAX_PAIRS = 2_000;
const MAX_EDGES = 5_000;

const put = (id: string, more: Partial<Definition> = {}) =>
  instance.put(id, { url: 'http://127.0.0.1:9/', target: { type: 'pull', queue: 'q' }, ...more });
const follow = (id: string, scheduleId: string, more: Partial<Definition> = {}) =>
  put(id, { cron: null, after: { scheduleId, on: ['succeeded'] }, ...more });
/** However busy the machine is. */
const write = (statement: SQL) => store.database.run((db) => db.execute(statement), 60_000);
/** So many more schedules that are as this one is. */
const multiply = (id: string, count: number) =>
  write(sql`INSERT INTO schedules
    SELECT (jsonb_populate_record(s, jsonb_build_object('uid', gen_random_uuid(), 'id', s.id || '-' || n))).*
    FROM schedules s, generate_series(1, ${count}::int) AS n WHERE id = ${id}`);
/** What follows from the ends of so many runs of a schedule, as their ends have written it. */
const leaveEnds = (id: string, count = 1) =>
  store.rows(sql`INSERT INTO effects
    (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'followers', ${runIdAt(sql`clock_timestamp()`)}, uid, version, id, 'schedule', 'succeeded', clock_timestamp(), 1
    FROM schedules, generate_series(1, ${count}) WHERE id = ${id}`);
const numberOf = async (rows: Promise<{ count: number }[]>) => (await rows)[0]?.count ?? 0;
const runsOf = (id: string) => numberOf(store.rows(sql`SELECT count(*)::int FROM runs WHERE schedule_id = ${id}`));
const allRuns = () => numberOf(store.rows(sql`SELECT count(*)::int FROM runs WHERE parent_run_id IS NOT NULL`));
/** Which pairs of an end and a follower have more or less than one run. */
const wrongPairs = (ends: number, followers: number) =>
  store.rows(sql`SELECT count(*) FROM runs WHERE parent_run_id IS NOT NULL AND schedule_id <> 'lone'
    HAVING count(*) <> ${ends * followers} OR count(DISTINCT (parent_run_id, schedule_uid)) <> ${ends * followers}`);
/** One pass of the loop, as its transaction does it. */
const oneTransaction = () => store.database.transaction((tx) => applyNext(tx, 200));

it('an end with very many followers is done in parts, and each other end goes before the next part', async () => {
  await follow('child', 'parent');
  await multiply('child', MAX_PAIRS + 400);
  await follow('all', '*');
  await leaveEnds('parent');
  await leaveEnds('other');
  await oneTransaction();
  expect(await runsOf('lone')).toBe(1);
  expect(await allRuns()).toBeLessThanOrEqual(MAX_PAIRS);
  await leaveEnds('other');
  const before = await allRuns();
  await oneTransaction();
  expect(await runsOf('lone')).toBe(2);
  expect(await runsOf('all')).toBe(3);
  expect(await allRuns()).toBeGreaterThan(before + 200);
  await applyAll(store);
  const pairs = await store.rows(sql`SELECT schedule_uid FROM runs WHERE schedule_id LIKE 'child%'`);
  expect(pairs).toHaveLength(MAX_PAIRS + 401);
  expect(new Set(pairs.map((row) => Object.values(row).join())).size).toBe(MAX_PAIRS + 401);
  expect(await store.rows(sql`SELECT FROM effects`)).toEqual([]);
});

it('a begun effect can rest between two parts, and other ends are done meanwhile', async () => {
  await follow('child', 'parent');
  await multiply('child', 700);
  await leaveEnds('parent');
  await oneTransaction();
  const first = await allRuns();
  expect(first).toBeLessThanOrEqual(100);
  await leaveEnds('other');
  await store.database.transaction((tx) => applyNext(tx, 200, { withBegun: false }));
  expect(await runsOf('lone')).toBe(1);
  expect(await allRuns()).toBe(first + 1);
  await instance.pipeline.begunEffects.start();
  await until(async () => (await store.rows(sql`SELECT FROM effects`)).length === 0 || null);
  expect(await runsOf('child')).toBe(1);
  expect(await wrongPairs(1, 701)).toEqual([]);
});

it('ends times followers: no transaction sees to more pairs than one may, on any number of instances', async () => {
  await follow('child', 'parent');
  await multiply('child', 29);
  await follow('serial', 'parent', { overlap: 'skip' });
  await leaveEnds('parent', 100);
  for (let recorded = 0; recorded < MAX_PAIRS;) {
    await oneTransaction();
    const now = await allRuns();
    expect(now - recorded).toBeGreaterThan(0);
    expect(now - recorded).toBeLessThanOrEqual(MAX_PAIRS + 100);
    recorded = now;
  }
  await leaveEnds('other');
  const another = await createInstance(store);
  for (const { pipeline } of [instance, another])
    await Promise.all([pipeline.effects.start(), pipeline.begunEffects.start()]);
  await until(async () => (await store.rows(sql`SELECT FROM effects`)).length === 0 || null);
  await another.stop();
  expect(await runsOf('lone')).toBe(1);
  const [serial] = await store.rows<{ count: number }>(
    sql`SELECT count(*)::int FROM all_runs WHERE schedule_id = 'serial'`,
  );
  expect(serial?.count).toBe(100);
  await store.rows(sql`DELETE FROM runs WHERE schedule_id = 'serial'`);
  expect(await wrongPairs(100, 30)).toEqual([]);
});

it('between two parts: a follower that is created has no run of an end before it, and one that is deleted has none', async () => {
  await follow('child', 'parent');
  await multiply('child', MAX_PAIRS + 1_000);
  await leaveEnds('parent');
  await oneTransaction();
  const [effect] = await store.rows<{ done_through: string }>(sql`SELECT done_through FROM effects`);
  const [to, gone] = await store.rows<{ uid: string; id: string }>(
    sql`SELECT uid, id FROM schedules WHERE after_uid IS NOT NULL AND uid > ${effect?.done_through ?? ''} ORDER BY uid DESC LIMIT 2`,
  );
  await follow('young', 'parent');
  // Its turn is still to come.
  await store.rows(sql`UPDATE schedules SET uid = 'ffffffff-ffff-4fff-bfff-ffffffffffff' WHERE id = 'young'`);
  await store.rows(sql`DELETE FROM schedules WHERE uid = ${gone?.uid ?? ''}`);
  await applyAll(store);
  expect(await runsOf(to?.id ?? '')).toBe(1);
  expect(await runsOf(gone?.id ?? '')).toBe(0);
  expect(await runsOf('young')).toBe(0);
  await leaveEnds('parent');
  await applyAll(store);
  expect(await runsOf('young')).toBe(1);
});

it('an end with very many dependents is counted in parts, and each other end goes before the next part', async () => {
  const [many] = await instance.accept({ queue: 'q' });
  const [few] = await instance.accept({ queue: 'q' });
  const [waits] = await instance.accept({ ref: 'a', queue: 'q', dependsOn: [few?.id ?? ''] });
  const [model] = await instance.accept({ ref: 'b', queue: 'q', dependsOn: [many?.id ?? ''] });
  await write(sql`WITH more AS (
      INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).*
      FROM runs r, generate_series(1, ${MAX_EDGES + 500}::int) WHERE id = ${model?.id ?? ''} RETURNING id)
    INSERT INTO run_dependencies SELECT id, ${many?.id ?? ''}, 0 FROM more`);
  const waiting = () => numberOf(store.rows(sql`SELECT count(*)::int FROM runs WHERE status = 'waiting'`));
  // They have ended, and these effects were written.
  for (const id of [many?.id ?? '', few?.id ?? ''])
    await store.rows(sql`WITH ended AS (DELETE FROM runs WHERE id = ${id} RETURNING *)
      INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'dependents', id, schedule_uid, schedule_version, schedule_id, trigger, 'succeeded', clock_timestamp(), 1 FROM ended`);
  const before = await waiting();
  await oneTransaction();
  const [released] = await store.rows<{ status: string }>(sql`SELECT status FROM runs WHERE id = ${waits?.id ?? ''}`);
  expect(released?.status).toBe('pending');
  expect(before - (await waiting())).toBeLessThanOrEqual(MAX_EDGES);
  expect(await waiting()).toBeGreaterThan(0);
  await applyAll(store);
  expect(await waiting()).toBe(0);
  expect(await store.rows(sql`SELECT FROM effects`)).toEqual([]);
});
