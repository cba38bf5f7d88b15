import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { countOpenRuns, countSchedules, sampleNotifiers, sampleWork } from '../../../src/store/reports/gauges.ts';
import { type Api, SCHEDULE, TARGET, startApi } from '../../api/api.ts';
import { type MigratedDatabase, createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { leaveMessages } from '../../support/notifiers.ts';
import { sqlOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store } from '../../support/pipeline.ts';
import { changeRun } from '../../support/run-rows.ts';
import { until } from '../../support/until.ts';

let own: MigratedDatabase;
let database: Database;
let api: Api;
beforeAll(async () => {
  own = await createMigratedDatabase();
  database = openDatabase(own.url, 1);
  api = await startApi(own.url);
});
afterAll(async () => {
  await api.stop();
  await database.close();
  await own.drop();
});

const openRuns = async () => (await database.run(countOpenRuns)).values.byStatus;
const counted = async () => (await database.run(countSchedules)).values;
const work = async () => (await database.run((db) => sampleWork(db, { overdueSeconds: 3 }))).values;

test('schedules are counted by the status that the API answers', async () => {
  const follower = { target: TARGET, after: { scheduleId: '*' } };
  const bodies: [id: string, body: object][] = [
    ['active', SCHEDULE],
    ['paused', { ...SCHEDULE, enabled: false }],
    ['ended', SCHEDULE],
    ['broken', SCHEDULE],
    ['follows', follower],
    ['follows-not', { ...follower, enabled: false }],
    ['follows-broken', follower],
    ['follows-no-more', follower],
    ['paused-broken', { ...SCHEDULE, enabled: false }],
  ];
  for (const [id, body] of bodies) {
    expect((await api.call('PUT', `/api/v1/schedules/${id}`, body)).status).toBe(201);
  }
  await api.sql`UPDATE schedules SET next_fire_at = NULL WHERE id = 'ended'`;
  await api.sql`UPDATE schedules SET error = 'cannot be planned' WHERE id IN ('broken', 'follows-broken', 'paused-broken')`;
  await api.sql`UPDATE schedules SET after_end_at = clock_timestamp() WHERE id = 'follows-no-more'`;
  const schedules = await counted();
  expect(schedules).toEqual({ active: 2, paused: 3, ended: 2, error: 2 });
  for (const [status, count] of Object.entries(schedules)) {
    const list = await api.call('GET', `/api/v1/schedules?status=${status}`);
    expect([status, (list.body['items'] as unknown as unknown[]).length]).toEqual([status, count]);
  }
});

test('runs that wait behind an active one are open, and counted apart from pending ones', async () => {
  await api.call('PUT', '/api/v1/schedules/queues', { ...SCHEDULE, overlap: 'queue' });
  for (const body of [{}, {}]) {
    expect((await api.call('POST', '/api/v1/schedules/queues/fire', body)).status).toBe(202);
  }
  expect(await openRuns()).toEqual({ waiting: 1, pending: 1, running: 0 });
});

test('a transaction that keeps its snapshot is seen, and gone when it has ended', async () => {
  await api.sql.begin('ISOLATION LEVEL REPEATABLE READ', async (tx) => {
    await tx`SELECT pg_sleep(0.01) FROM all_runs`;
    await tx`SELECT 1`;
    expect((await work()).oldestSnapshotSeconds).toBeGreaterThan(0);
  });
  // One that analyzes a table has a snapshot, too, for a moment.
  await until(async () => (await work()).oldestSnapshotSeconds === 0 || null);
});

test('so are runs that wait for other runs, and runs that a worker has', async () => {
  const before = await openRuns();
  const target = { type: 'pull', queue: 'reports' };
  const items = [
    { ref: 'first', target },
    { ref: 'then', target, dependsOn: ['first'] },
  ];
  expect((await api.call('POST', '/api/v1/runs/batch', { items })).status).toBe(201);
  const pending = before.pending + 1;
  expect(await openRuns()).toEqual({ waiting: before.waiting + 1, pending, running: 0 });
  await api.call('POST', '/api/v1/queues/reports/claim', { workerId: 'one' });
  expect(await openRuns()).toMatchObject({ pending: pending - 1, running: 1 });
});

test('zone data is that of living instances, each version once', async () => {
  await api.sql`INSERT INTO instances (id, host, version, zone_data, ttl_seconds, started_at, heartbeat_at, died_at)
    SELECT gen_random_uuid(), 'test', '0', zone_data, 60, clock_timestamp(),
      clock_timestamp() - make_interval(secs => silent), CASE WHEN dead THEN clock_timestamp() END
    FROM (VALUES ('2026c', 0, false), ('2025c', 0, false), ('2026c', 1, false), ('2020a', 61, false), ('2020b', 0, true))
      AS i (zone_data, silent, dead)`;
  expect(await work()).toMatchObject({ zoneData: ['2025c', '2026c'], instancesAlive: 3 });
  await api.sql`UPDATE instances SET died_at = clock_timestamp()`;
  expect(await work()).toMatchObject({ zoneData: [], instancesAlive: 0 });
});

test('the oldest pending run is found in any lane, claimed or not, and one whose claimant is gone is stranded', async () => {
  const { sql } = api;
  const due = (seconds: number) => sql`clock_timestamp() - make_interval(secs => ${seconds})`;
  const fire = async (queue: string) => {
    const { body } = await api.call('POST', '/api/v1/runs', { target: { type: 'pull', queue } });
    return body['id'] as unknown as string;
  };
  const [young, old, older] = [await fire('a'), await fire('b'), await fire('b')];
  await sql`UPDATE runs SET due_at = ${due(100)} WHERE id = ${young}`;
  await sql`UPDATE runs SET due_at = ${due(1000)} WHERE id = ${old}`;
  await sql`UPDATE runs SET due_at = ${due(900)} WHERE id = ${older}`;
  expect(Math.floor((await work()).oldestPendingSeconds / 100)).toBe(10);
  // Due, and not seen to be: nobody can claim it as it is.
  await sql`UPDATE runs SET due_at = ${due(2000)}, ready = false WHERE id = ${older}`;
  expect(Math.floor((await work()).oldestPendingSeconds / 100)).toBe(20);
  const before = (await work()).strandedRuns;
  await sql`UPDATE runs SET due_at = ${due(5000)}, claimed_by = gen_random_uuid(), claimed_at = clock_timestamp() WHERE id = ${young}`;
  const { oldestPendingSeconds, strandedRuns } = await work();
  expect([Math.floor(oldestPendingSeconds / 1000), strandedRuns]).toEqual([5, before + 1]);
});

test('a run with a limit is pending from the moment on at which it has a place, claimed or not', async () => {
  const { sql } = api;
  await sql`DELETE FROM runs`;
  const ago = (seconds: number) => sql`clock_timestamp() - make_interval(secs => ${seconds})`;
  await api.call('PUT', '/api/v1/limits/one', { maxRunning: 1 });
  const ids: string[] = [];
  for (const limit of ['one', 'one', null]) {
    const { body } = await api.call('POST', '/api/v1/runs', { target: { type: 'pull', queue: 'l' }, limit });
    ids.push(body['id'] as unknown as string);
  }
  const [first = '', second = '', free = ''] = ids;
  const oldest = async () => Math.floor((await work()).oldestPendingSeconds / 10);
  await sql`UPDATE runs SET due_at = ${ago(20)} WHERE id = ${free}`;
  await sql`UPDATE runs SET due_at = ${ago(5000)}, admitted_at = NULL, ready = false WHERE limit_id IS NOT NULL`;
  expect(await oldest()).toBe(2);
  await sql`UPDATE runs SET admitted_at = ${ago(30)}, ready = true WHERE id = ${first}`;
  expect(await oldest()).toBe(3);
  // What is not due yet when it gets its place is not pending before.
  await sql`UPDATE runs SET due_at = ${ago(10)} WHERE id = ${first}`;
  expect(await oldest()).toBe(2);
  await sql`UPDATE runs SET admitted_at = ${ago(40)}, ready = true, claimed_by = gen_random_uuid(),
    claimed_at = clock_timestamp() WHERE id = ${second}`;
  expect(await oldest()).toBe(4);
  await sql`DELETE FROM runs`;
});

test('effects are counted until they are done, and failing ones apart', async () => {
  const before = await work();
  await api.sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at,
      attempt, failures, retry_at)
    SELECT 'cancel', gen_random_uuid(), gen_random_uuid(), 1, 'gone', 'schedule', 'cancelled', clock_timestamp(), 1, n,
      clock_timestamp() + make_interval(hours => n)
    FROM generate_series(0, 2) AS n`;
  const { effectsPending, effectsFailing, oldestEffectSeconds } = await work();
  expect([effectsPending - before.effectsPending, effectsFailing - before.effectsFailing]).toEqual([3, 2]);
  // Of those that fail, the age tells nothing.
  await api.sql`UPDATE effects SET created_at = created_at - make_interval(hours => failures + 1)`;
  expect(oldestEffectSeconds).toBeLessThan(3600);
  expect(Math.floor((await work()).oldestEffectSeconds / 3600)).toBe(1);
});

describe('the gauge of notifiers', () => {
  let store: Store;
  beforeEach(async () => {
    store = await storeOfTest();
  });

  const URL = 'http://127.0.0.1:9';
  const sampled = async () => (await store.database.run(sampleNotifiers)).values;
  /** A message of a notifier that ended so, so long ago. */
  const ended = async (notifier: string, status: string, secondsAgo: number) => {
    const [id = ''] = await leaveMessages(store, { url: URL, notifier, secondsAgo });
    const at = new Date(Date.now() - secondsAgo * 1000).toISOString();
    await changeRun(sqlOfTest(store.url), id, { status, reason: 'age', finished_at: at, updated_at: at });
  };

  it('notifiers are told apart by their newest message that ended and was not called off', async () => {
    await ended('broken', 'succeeded', 60);
    await ended('broken', 'failed', 50);
    await ended('gave-up', 'abandoned', 50);
    await ended('gave-up', 'cancelled', 40);
    await ended('mended', 'failed', 60);
    await ended('mended', 'succeeded', 50);
    expect(await sampled()).toEqual({ undelivered: ['broken', 'gave-up'], waiting: [] });
    await store.rows(sql`UPDATE notifiers SET enabled = false WHERE id = 'broken'`);
    await store.rows(sql`DELETE FROM notifiers WHERE id = 'gave-up'`);
    expect(await sampled()).toEqual({ undelivered: [], waiting: [] });
  });

  it('what ended before yesterday says nothing of today', async () => {
    await ended('broken', 'failed', 60);
    await store.rows(sql`UPDATE history SET ended_at = ended_at - interval '25 hours'`);
    expect(await sampled()).toEqual({ undelivered: [], waiting: [] });
  });

  it('a message that is not delivered after five minutes is noticed, whatever it waits for', async () => {
    const later = sql`UPDATE runs SET due_at = clock_timestamp() + interval '10 minutes', ready = false WHERE notifier_id = 'retries'`;
    await leaveMessages(store, { url: URL, notifier: 'waits', secondsAgo: 310 });
    await leaveMessages(store, { url: URL, notifier: 'retries', secondsAgo: 310 });
    await leaveMessages(store, { url: URL, notifier: 'gathers', secondsAgo: 310, status: 'waiting' });
    await leaveMessages(store, { url: URL, notifier: 'young', secondsAgo: 200, count: 3 });
    await store.rows(later);
    expect(await sampled()).toEqual({ undelivered: [], waiting: ['gathers', 'retries', 'waits'] });
  });
});
