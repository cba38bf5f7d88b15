import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutcomeWatch } from '../../src/core/schedules/outcome-watch.ts';
import type { Executor, Transaction } from '../../src/postgres/executor.ts';
import { rowsOf } from '../../src/postgres/sql/rows.ts';
import { listAlerts } from '../../src/store/alerts/alert-rows.ts';
import { listAudit } from '../../src/store/audit/audit-rows.ts';
import { writeBacklogs } from '../../src/store/backlogs/backlog-rows.ts';
import { writeLateEffects, writeOverlapEffects } from '../../src/store/effects/insert-effects.ts';
import { newScheduleUid } from '../../src/operations/schedules/schedule-writes.ts';
import type { Effect } from '../../src/store/effects/effect-rows.ts';
import { nextPairs } from '../../src/store/effects/followers.ts';
import { namersOf } from '../../src/store/names/named-rows.ts';
import { admitLocked, limitsToAdmit } from '../../src/store/limits/limits.ts';
import { findExpired } from '../../src/store/runs/begin-by.ts';
import { findPassedBounds } from '../../src/store/runs/bounds.ts';
import { claimReadyRuns } from '../../src/store/runs/claims/claims.ts';
import { claimIfReady } from '../../src/store/runs/claims/claim-if-ready.ts';
import { claimDueRuns } from '../../src/store/runs/claims/claim-due-runs.ts';
import { openRunsOf } from '../../src/store/runs/ends/abandon-runs.ts';
import { readGuarded } from '../../src/store/runs/guarded-runs.ts';
import { intentOf } from '../../src/store/runs/intents/intent.ts';
import { lockDueSchedules } from '../../src/store/schedules/fire-locks.ts';
import { appendToLockedLog, hasRunLog } from '../../src/store/runs/logs/append-log.ts';
import { positionsWithNews } from '../../src/store/runs/logs/read-log.ts';
import { logDayOf, logRoom } from '../../src/core/runs/run-log.ts';
import { randomRunId } from '../../src/core/runs/run.ts';
import { isoInstant } from '../../src/core/instant.ts';
import { createPartition } from '../../src/postgres/history-partitions.ts';
import { dayAgo } from '../support/history.ts';
import { recordIntentsIfLocked } from '../../src/store/runs/intents/record-intents.ts';
import { newestFirst } from '../../src/store/runs/search/run-pages.ts';
import { listTimings } from '../../src/store/reports/occurrence-rows.ts';
import { matchingSchedules } from '../../src/store/schedules/search/matching-schedules.ts';
import { settlePlainIfClaimed } from '../../src/store/runs/ends/settle-plain.ts';
import { countFailuresInARow, lastSuccesses } from '../../src/store/schedules/watches.ts';
import { leaveOpenRuns } from '../support/open-runs.ts';
import { leaveRuns, runIdAt } from '../support/pending-runs.ts';
import { plainSuccess } from '../support/claims.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../support/pipeline.ts';
import { type PlanNode, filtersIn, loopsOver, rowsIn } from '../support/postgres/plans.ts';

let store: Store;
let instance: TestInstance;
let client: postgres.Sql;
beforeAll(async () => {
  store = await createStore();
  // One that analyzes a table keeps rows of all others from becoming visible to all, which the planner counts on.
  await store.rows(sql`DO $$ DECLARE name regclass; BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    LOOP EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name); END LOOP; END $$`);
  instance = await createInstance(store);
  client = postgres(store.url, { max: 1, onnotice: () => undefined });
});
afterAll(async () => {
  await client.end();
  await instance.stop();
  await store.drop();
});

/** One-off runs due next week, each of a lane of its own: to that many targets. */
async function runsToCome(count: number): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http https://host-' || i || '.' || at, 1, at,
      false, 0, now(), now()
    FROM generate_series(1, ${count}::int) AS i,
      LATERAL (SELECT date_trunc('second', clock_timestamp()) + interval '7 days' + make_interval(secs => i) AS at) AS t`);
  await store.rows(sql`VACUUM ANALYZE runs`);
}

/** Runs of one lane that are due, which the statistics do not know of. */
async function dueRuns(count: number, { ready }: { ready: boolean }): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://due', 1, at, ${ready}, 0, now(), now()
    FROM generate_series(1, ${count}::int) AS i,
      LATERAL (SELECT date_trunc('second', clock_timestamp()) - make_interval(secs => i) AS at) AS t`);
}

interface Statement {
  sql: string;
  params: (string | number | Buffer | null)[];
}

const NO_ROWS = Object.assign([], { columns: [] });

/** The statement that the work would run. */
async function statementOf(work: (db: Executor) => Promise<unknown>): Promise<Statement> {
  let found: Statement | undefined;
  const session = {
    prepareQuery: (query: Statement) => {
      found = query;
      return { execute: () => Promise.resolve(NO_ROWS) };
    },
  };
  const execute = (statement: SQL) => {
    found = new PgDialect().sqlToQuery(statement) as Statement;
    return Promise.resolve(NO_ROWS);
  };
  // It may demand a row of the answer.
  await work({ _: { session }, execute } as unknown as Executor).catch(() => undefined);
  if (!found) throw new Error('no statement was prepared');
  return found;
}

/** Rows that it comes by, planned for its parameters and for any. */
async function rowsReadBy(statement: Statement): Promise<number[]> {
  return (await plansOf(statement)).map(rowsIn);
}

/** As they were carried out, planned for its parameters and for any; nothing of what it writes stays. */
async function plansOf({ sql: text, params }: Statement): Promise<(PlanNode | undefined)[]> {
  const written = (value: string | number | Buffer) =>
    Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : String(value).replaceAll("'", "''");
  const values = params.map((value) => (value === null ? 'NULL' : `'${written(value)}'`));
  const plans: (PlanNode | undefined)[] = [];
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    await client.unsafe(`BEGIN; SET LOCAL plan_cache_mode = ${mode}; PREPARE measured AS ${text}`);
    const [row] = await client.unsafe<{ 'QUERY PLAN': { Plan: PlanNode }[] }[]>(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE measured (${values.join(', ')})`,
    );
    await client.unsafe('ROLLBACK; DEALLOCATE measured');
    plans.push(row?.['QUERY PLAN'][0]?.Plan);
  }
  return plans;
}

test('a claim reads the same few rows, however much is recorded for next week, for however many targets', async () => {
  await instance.put('now', { url: 'http://127.0.0.1:1' });
  await leaveRuns(store, 'now', { count: 20 });
  await store.rows(sql`UPDATE runs SET ready = false WHERE id IN (SELECT id FROM runs ORDER BY id LIMIT 5)`);
  const request = {
    instanceId: instance.id,
    limit: 10,
    freeByLane: new Map([['http http://127.0.0.1:2', 3]]),
    freePerLane: 16,
    targetTypes: ['http'],
  };
  const claim = await statementOf((db) => claimReadyRuns(db, request));
  const claimDue = await statementOf((db) => claimDueRuns(db, { ...request, atMost: 100 }));
  const read: Record<string, number[]> = {};
  let recorded = 0;
  for (const count of [1_000, 5_000, 20_000]) {
    await runsToCome(count - recorded);
    recorded = count;
    read[`claim, ${count}`] = await rowsReadBy(claim);
    read[`claim of due ones, ${count}`] = await rowsReadBy(claimDue);
  }
  // Ten of fifteen are claimed, and five become ready: each is come by a few times on its way through the plan.
  const few = expect.toSatisfy((rows: number) => rows > 0 && rows < 300, 'reads few rows') as number;
  expect(read).toEqual(Object.fromEntries(Object.keys(read).map((name) => [name, [few, few]])));
});

test('a claim of due runs reads none of those that wait already, also if the statistics know of none', async () => {
  const claimDue = await statementOf((db) =>
    claimDueRuns(db, {
      instanceId: instance.id,
      limit: 1_000,
      freeByLane: new Map(),
      freePerLane: 1_000,
      targetTypes: ['http'],
      atMost: 125,
    }),
  );
  await runsToCome(10_000);
  await dueRuns(5_000, { ready: true });
  await dueRuns(20, { ready: false });
  for (const rows of await rowsReadBy(claimDue)) expect(rows).toBeLessThan(300);
});

test('a claim by id reads the runs of these ids, however many others are ready, also if the statistics know of none', async () => {
  await store.rows(sql`DELETE FROM runs`);
  await dueRuns(50, { ready: true });
  await store.rows(sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = now()`);
  await store.rows(sql`VACUUM ANALYZE runs`);
  await dueRuns(10_000, { ready: true });
  const runs = await store.rows<{ id: string }>(sql`SELECT id FROM runs WHERE claimed_by IS NULL LIMIT 10`);
  const ids = runs.map(({ id }) => id);
  const request = { instanceId: instance.id, targetTypes: ['http'] };
  const claim = await statementOf((db) => claimIfReady(db, ids, request));
  for (const rows of await rowsReadBy(claim)) expect(rows).toBeLessThan(200);
  expect(await store.database.run((db) => claimIfReady(db, ids, request))).toHaveLength(10);
  await store.rows(sql`DELETE FROM runs`);
});

/** Due runs of one limit, and some due tomorrow; with a limit that has places for five of them, and four that hold one. */
async function runsThatWait(from: number, to: number): Promise<void> {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, limit_id, admitted_at, ready, attempts, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, '', 'api', 'pending', 'http http://127.0.0.1:3', i % 3, at, 'l',
      CASE WHEN i < 4 THEN at END, i < 4, 0, now(), now()
    FROM generate_series(${from}::int, ${to}::int - 1) AS i, LATERAL (SELECT date_trunc('second', clock_timestamp())
      + CASE WHEN i % 5 = 4 THEN interval '1 day' ELSE interval '-1 hour' END + make_interval(secs => i * 0.01) AS at) AS t`);
  await store.rows(sql`ANALYZE runs`);
}

test('admission reads the same few rows, however many runs wait for their limit', async () => {
  await store.rows(sql`INSERT INTO limits VALUES ('l', NULL, 5, 1, now())`);
  const find = await statementOf((db) => limitsToAdmit(db, 100));
  const admit = await statementOf((db) => admitLocked(db, ['l']));
  const read: Record<string, number[]> = {};
  let recorded = 0;
  for (const count of [100, 1_000, 8_000]) {
    await runsThatWait(recorded, count);
    recorded = count;
    read[`find, ${count}`] = await rowsReadBy(find);
    read[`admit, ${count}`] = await rowsReadBy(admit);
  }
  expect(await store.database.run((db) => limitsToAdmit(db, 100))).toMatchObject({ ids: ['l'] });
  const few = expect.toSatisfy((rows: number) => rows > 0 && rows < 100, 'reads few rows') as number;
  expect(read).toEqual(Object.fromEntries(Object.keys(read).map((name) => [name, [few, few]])));
});

/** Schedules as an import leaves them, not analyzed, all under the instance's fire-lock since that moment. */
async function lockedSchedules(count: number, lockedAt: number, name = 'locked'): Promise<string[]> {
  const rows = await store.rows<{
    uid: string;
  }>(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane,
      priority, next_occurrence_at, next_fire_at, locked_by, locked_at, created_at, updated_at)
    SELECT gen_random_uuid(), ${name} || '-' || i, 1, true, '{}', false, 'allow', 'http http://127.0.0.1:1', 1, now(), now(),
      ${instance.id}, to_timestamp(${lockedAt} / 1000.0::float8), now(), now()
    FROM generate_series(1, ${count}::int) AS i RETURNING uid`);
  return rows.map(({ uid }) => uid).sort();
}

function advanceAt(uid: string, lockedAt: number) {
  const next = { nextOccurrenceAt: lockedAt + 60_000, nextFireAt: lockedAt + 60_000 };
  return { uid, version: 1, lockedAt, ...next, plannedThrough: lockedAt, lastFireAt: lockedAt };
}

function fireAt(uid: string, at: number) {
  const fire = { scheduledFor: at, dueAt: at, skipped: null, coalesced: 0, coalescedFrom: null } as const;
  return { ...intentOf(uid, { ...fire, trigger: 'schedule' }), claimed: true };
}

test('recording a batch of fires, and settling it, comes by each row a few times, however many schedules there are', async () => {
  // An ANALYZE by autovacuum in the middle of the import would tell the planner that there is one schedule.
  await store.rows(sql`ALTER TABLE schedules SET (autovacuum_enabled = off)`);
  const lockedAt = Math.floor(Date.now() / 1000) * 1000;
  const uids = await lockedSchedules(5_000, lockedAt);
  const batch = uids.slice(0, 200);
  const advances = batch.map((uid) => advanceAt(uid, lockedAt));
  const intents = batch.map((uid) => fireAt(uid, lockedAt));
  const record = (db: Executor) => recordIntentsIfLocked(db, instance.id, advances, intents, { alone: true });
  const readByRecording = await rowsReadBy(await statementOf(record));
  expect(await store.database.run(record)).toMatchObject({ advanced: 200 });
  const plain = intents.map(({ id }) => plainSuccess({ runId: id, instanceId: instance.id, at: lockedAt }));
  const settle = (db: Executor) => settlePlainIfClaimed(db, plain);
  const readBySettling = await rowsReadBy(await statementOf(settle));
  const { settled } = await store.database.run(settle);
  expect(intents.every(({ id }) => settled(id))).toBe(true);
  const few = expect.toSatisfy((rows: number) => rows > 200 && rows < 200 * 25, 'few rows a fire') as number;
  expect({ readByRecording, readBySettling }).toEqual({
    readByRecording: [few, few],
    readBySettling: [few, few],
  });
});

test('the tick looks each schedule that it is still planning up in a hash, however many there are', async () => {
  const walking = await lockedSchedules(4_000, Date.now(), 'walking');
  const tick = await statementOf((db) =>
    lockDueSchedules(db, { instanceId: instance.id, limit: 500, lockTtlSeconds: 120, walking }),
  );
  for (const plan of await plansOf(tick)) {
    const filters = filtersIn(plan).join('\n');
    expect(filters).toContain('hashed SubPlan');
    expect(filters).not.toContain('uid <> ALL');
  }
});

test('the tick and claims ask once for maintenance, however many schedules and runs are due', async () => {
  await store.rows(sql`UPDATE schedules SET locked_by = NULL WHERE id LIKE 'locked-1%'`);
  await store.rows(
    sql`UPDATE runs SET ready = true WHERE id IN (SELECT id FROM runs WHERE limit_id IS NULL ORDER BY id LIMIT 50)`,
  );
  await store.rows(sql`UPDATE installation SET mode = 'holds', mode_since = now(), until = now() - interval '1 hour'`);
  const { id: instanceId } = instance;
  const room = { limit: 100, freeByLane: new Map(), freePerLane: 16, targetTypes: ['http'] };
  const statements = {
    tick: (db: Executor) => lockDueSchedules(db, { instanceId, limit: 100, lockTtlSeconds: 120, walking: [] }),
    claim: (db: Executor) => claimReadyRuns(db, { ...room, instanceId }),
  };
  for (const [name, statement] of Object.entries(statements)) {
    for (const plan of await plansOf(await statementOf(statement)))
      expect([name, loopsOver('installation', plan)]).toEqual([name, 1]);
  }
});

test('the last success and the failures since are found in few rows, however many failures a schedule has', async () => {
  const { uid } = await instance.put('watched', {
    url: 'http://127.0.0.1:1',
    pauseAfterFailures: 3,
    successWithinSeconds: 60,
  });
  await store.rows(
    sql`UPDATE outcome_watches SET failures_since = now() - interval '1 day', success_since = now() - interval '1 day'`,
  );
  // Not analyzed, as after an import.
  await store.rows(sql`INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, attempts, outcome_watched, created_at, updated_at, finished_at, ended_at)
    SELECT gen_random_uuid(), at, ${uid}, 1, 'watched', 'schedule', CASE WHEN i % 4000 = 0 THEN 'succeeded' ELSE 'failed' END,
      'http http://127.0.0.1:1', 1, at, 1, true, at, at, at, at
    FROM generate_series(1, 10000) AS i, LATERAL (SELECT now() - make_interval(secs => i) AS at) AS t`);
  const found = await store.database.run((db) => lastSuccesses(db, [watchOf(uid)]));
  expect(found.get(uid)).toBeGreaterThan(Date.now() - 20_000_000);
  const success = await rowsReadBy(await statementOf((db) => lastSuccesses(db, [watchOf(uid)])));
  const failures = await rowsReadBy(
    await statementOf((db) => countFailuresInARow(db as unknown as Transaction, [uid])),
  );
  const few = expect.toSatisfy((rows: number) => rows > 0 && rows < 200, 'reads few rows') as number;
  expect({ success, failures }).toEqual({ success: [few, few], failures: [few, few] });
});

test('a fire whose runs must not overlap, and a judgement of overlaps, read a few rows, however many runs of the schedule are open, and whatever the statistics know', async () => {
  const { uid } = await instance.put('judged', { url: 'http://127.0.0.1:1', overlap: 'replace' });
  const lockedAt = Math.floor(Date.now() / 1000) * 1000;
  await store.rows(
    sql`UPDATE schedules SET locked_by = ${instance.id}, locked_at = to_timestamp(${lockedAt} / 1000.0::float8) WHERE uid = ${uid}`,
  );
  const [advances, intents] = [[advanceAt(uid, lockedAt)], [fireAt(uid, lockedAt)]];
  const statements: Record<string, () => Promise<Statement>> = {
    record: () => statementOf((db) => recordIntentsIfLocked(db, instance.id, advances, intents, { alone: false })),
    judge: () => statementOf((db) => readGuarded(db, [uid], 10)),
    judgeSoon: () => statementOf((db) => writeOverlapEffects(db as unknown as Transaction, [uid])),
    endOrMark: () => statementOf((db) => rowsOf(db)(openRunsOf(uid, 10))),
  };
  const read: Record<string, number[]> = {};
  const readAll = async (when: string) => {
    for (const overlap of ['replace', 'skip']) {
      await store.rows(sql`UPDATE schedules SET overlap = ${overlap} WHERE uid = ${uid}`);
      for (const [name, statement] of Object.entries(statements))
        read[`${name}, ${overlap}, ${when}`] = await rowsReadBy(await statement());
    }
  };
  await leaveOpenRuns(store, 'judged', 4_000, { trigger: 'backfill', secondsAgo: 20_000 });
  await readAll('all backfilled, not analyzed');
  await leaveOpenRuns(store, 'judged', 4_000, { retried: true, secondsAgo: 40_000 });
  await leaveOpenRuns(store, 'judged', 4_000);
  await leaveOpenRuns(store, 'judged', 2_000, { status: 'waiting', secondsAgo: 60_000 });
  await readAll('not analyzed');
  await store.rows(sql`VACUUM ANALYZE runs`);
  await readAll('analyzed');
  // An edit has not marked them yet.
  await store.rows(sql`DELETE FROM runs WHERE schedule_uid = ${uid} AND status = 'waiting'`);
  await store.rows(sql`UPDATE runs SET overlap_guarded = false WHERE schedule_uid = ${uid} AND status <> 'waiting'`);
  const marked = { kind: 'marked', uid, scheduleId: 'judged' } as const;
  await store.database.transaction((tx) => writeBacklogs(tx, [marked]));
  await readAll('to be marked');
  const few = expect.toSatisfy((rows: number) => rows > 0 && rows < 200, 'reads few rows') as number;
  expect(read).toEqual(Object.fromEntries(Object.keys(read).map((name) => [name, [few, few]])));
});

function watchOf(uid: string): OutcomeWatch {
  const since = Date.now() - 86_400_000;
  const kept = { pauseAfterFailures: null, successWithinSeconds: 60, lastSuccessAt: null };
  return {
    scheduleUid: uid,
    ...kept,
    failuresSince: since,
    successSince: since,
    lookAt: null,
  };
}

test('the next followers of an end are read, and not those behind or before them', async () => {
  const { uid } = await instance.put('followed', { url: 'http://127.0.0.1:1' });
  const after = { scheduleId: 'followed', on: ['succeeded'] } as const;
  await instance.put('follower', {
    url: 'http://127.0.0.1:1',
    cron: null,
    after: { ...after, on: [...after.on] },
  });
  await store.database.run(
    (db) =>
      db.execute(sql`INSERT INTO schedules
        SELECT (jsonb_populate_record(s, jsonb_build_object('uid', gen_random_uuid(), 'id', s.id || n))).*
        FROM schedules s, generate_series(1, 4000) AS n WHERE id = 'follower'`),
    60_000,
  );
  const end = { followerUid: null, scheduleUid: uid, doneThrough: '80000000-0000-4000-8000-000000000000' };
  const ends = Array.from({ length: 20 }, (_, id) => ({ ...end, id }) as Effect);
  const read = await rowsReadBy(await statementOf((db) => nextPairs(db as never, ends)));
  // A hundred for each end, by some steps of the plan each.
  for (const rows of read) expect(rows).toBeLessThan(50_000);
});

test('whether a schedule is followed is read by a few steps of an index, also where some follow prefixes and nothing is known of the table', async () => {
  const following = { url: 'http://127.0.0.1:1', cron: null };
  await instance.put('follows-prefix', { ...following, after: { scheduleId: 'team.*', on: ['succeeded'] } });
  await store.rows(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
    SELECT gen_random_uuid(), 'unknown-' || n, 1, false, '{}', false, 'allow', 'pull x', 1, now(), now()
    FROM generate_series(1, 6000) AS n`);
  await store.rows(sql`DELETE FROM pg_statistic WHERE starelid = 'schedules'::regclass`);
  const late = Array.from({ length: 20 }, (_, n) => ({
    ...{ uid: newScheduleUid(Date.now()), id: `${n % 2 === 0 ? 'team' : 'other'}.${n}`, version: 1 },
    lateSince: Date.now(),
  }));
  const read = await rowsReadBy(await statementOf((db) => writeLateEffects(db as never, late)));
  for (const rows of read) expect(rows).toBeLessThan(20 * 100);
});

test('a small scope among very many schedules is read alone: its timings, and what a bulk action of it matches', async () => {
  await store.rows(sql`VACUUM ANALYZE schedules`);
  const scope = ['unknown-1999'];
  const timings = await statementOf((db) => listTimings(db, { scope, after: null, limit: 5000 }));
  const matching = await statementOf((db) => matchingSchedules(db, { scope, text: 'n' }));
  for (const statement of [timings, matching])
    for (const read of await rowsReadBy(statement)) expect(read).toBeLessThan(200);
});

test('who names a connection is found among very many schedules by reading only those', async () => {
  await store.rows(sql`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, created_at, updated_at)
    SELECT gen_random_uuid(), 'lane-' || n, 1, false, '{}', false, 'allow',
      'http ' || CASE WHEN n % 1000 = 0 THEN 'connection c' || n % 3000 ELSE 'https://host-' || n END, 1, now(), now()
    FROM generate_series(1, 9000) AS n`);
  await store.rows(sql`VACUUM ANALYZE schedules`);
  const ofSchedules = await statementOf((db) => {
    const isFirst = (statement: SQL) => new PgDialect().sqlToQuery(statement).sql.includes('FROM schedules WHERE lane');
    const execute = (statement: SQL) => (isFirst(statement) ? db.execute(statement) : Promise.resolve(NO_ROWS));
    return namersOf(
      { execute } as unknown as Executor,
      { table: 'connections', id: 'c0', which: 'all', scope: null },
      100,
    );
  });
  for (const read of await rowsReadBy(ofSchedules)) expect(read).toBeLessThan(20);
});

test('bounds that have passed, runs that kept none, and runs that have expired are found among very many runs by reading only those', async () => {
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, ready, attempts, unmet, next_bound, bound_at, begin_by, created_at, updated_at)
    SELECT ${runIdAt(sql`at`)}, at, gen_random_uuid(), 1, 's', 'manual', 'pending', 'http http://bounded', 1, at, true, 0,
      CASE WHEN i % 1000 = 1 THEN '{start}'::text[] END, CASE WHEN i % 2 = 0 THEN 'start' END,
      CASE WHEN i % 2 = 0 THEN bound END, bound, now(), now()
    FROM generate_series(1, 10000) AS i,
      LATERAL (SELECT date_trunc('second', clock_timestamp()) - make_interval(secs => i) AS at) AS t,
      LATERAL (SELECT CASE WHEN i % 1000 = 0 THEN at - interval '1 hour' ELSE at + interval '1 day' END AS bound) AS b`);
  await store.rows(sql`VACUUM ANALYZE runs, history`);
  const expired = await statementOf((db) => findExpired(db, { limit: 500, besides: [] }));
  const passed = await statementOf((db) => findPassedBounds(db, { limit: 500, besides: [] }));
  const unmet = await statementOf((db) => rowsOf(db)(newestFirst({ unmet: ['start'], limit: 100 })));
  for (const statement of [passed, unmet, expired]) {
    for (const read of await rowsReadBy(statement)) expect(read).toBeLessThan(100);
  }
});

test('what a small scope may read of alerts and of the audit is found among very many rows of others by reading only those', async () => {
  await store.rows(sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, until)
    SELECT gen_random_uuid(), gen_random_uuid(), CASE WHEN n % 1000 = 0 THEN 'billing.' ELSE 'x' END || n, 'failed', now(), now(), now()
    FROM generate_series(1, 8000) AS n`);
  await store.rows(sql`INSERT INTO audit (at, role, action, subject, schedule_id, outcome, detail, name, scope)
    SELECT now(), 'admin', CASE WHEN n % 2 = 0 THEN 'run.cancel' ELSE 'run.complete' END, n, CASE WHEN n % 3 = 0 THEN owner || n END,
      'done', '{}', CASE WHEN n % 3 = 1 THEN owner || n WHEN n % 3 = 2 THEN owner END, CASE WHEN n % 3 = 2 THEN ARRAY[owner] END
    FROM generate_series(1, 8000) AS n, LATERAL (SELECT CASE WHEN n % 1000 = 0 THEN 'billing.' ELSE 'x' END AS owner) AS o`);
  await store.rows(sql`VACUUM ANALYZE alerts, audit`);
  const asked = { scope: ['billing.'], limit: 50 };
  const alerts = await statementOf((db) => listAlerts(db, { ...asked, open: false }));
  const audit = await statementOf((db) => listAudit(db, asked));
  for (const statement of [alerts, audit]) {
    expect(statement.sql).toContain('own AS MATERIALIZED');
    for (const read of await rowsReadBy(statement)) expect(read).toBeLessThan(300);
  }
});

test('an append to a log, and a look for more of it, read the same few rows, however many runs have logs', async () => {
  for (const days of [20, 10, 1]) await store.database.run((db) => createPartition(db, dayAgo(days), 'run_logs'));
  const runId = randomRunId(Date.now());
  /** Each with sixteen chunks, as a whole log of long appends has. */
  const leaveLogs = async (ids: SQL) => {
    await store.rows(sql`INSERT INTO run_logs (day, run_id, attempt, place, at_offset, bytes)
      SELECT ${isoInstant(logDayOf(runId))}::timestamptz, id, 1, n * 200, n * 200, decode(repeat('41', 200), 'hex')
      FROM ${ids} AS logs(id), generate_series(0, 15) AS n`);
    await store.rows(sql`VACUUM ANALYZE run_logs`);
  };
  await leaveLogs(sql`(SELECT ${runId}::uuid)`);
  const bytes = Buffer.from('more');
  const append = { attempt: 1, offset: 3_200, bytes };
  const statements = {
    append: await statementOf((db) => appendToLockedLog(db as Transaction, runId, append, logRoom(1))),
    look: await statementOf((db) => positionsWithNews(db, [{ runId, attempt: 1, offset: 3_200 }])),
    has: await statementOf((db) => hasRunLog(db, runId, 1)),
  };
  const read: Record<string, number[]> = {};
  for (const count of [100, 3_000]) {
    const id = sql`overlay(gen_random_uuid()::text PLACING ${runId.slice(0, 14)} FROM 1 FOR 14)::uuid`;
    await leaveLogs(sql`(SELECT ${id} FROM generate_series(1, ${count}::int))`);
    for (const [name, statement] of Object.entries(statements)) read[`${name}, ${count}`] = await rowsReadBy(statement);
  }
  const few = expect.toSatisfy((rows: number) => rows > 0 && rows < 150, 'reads few rows') as number;
  expect(read).toEqual(Object.fromEntries(Object.keys(read).map((name) => [name, [few, few]])));
});
