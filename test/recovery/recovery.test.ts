import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import type { Definition } from '../../src/core/schedules/schedule.ts';
import { STATEMENT_LIMIT_MS } from '../../src/postgres/database.ts';
import { createRecovery } from '../../src/recovery/recovery.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { declareDeadIfSilent, registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { findOrphans, takeOverIfStillClaimed } from '../../src/store/runs/claims/take-over-lost-claims.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../support/of-test.ts';
import { passingClock, passingDatabaseClock } from '../support/clocks.ts';
import { runIdAt, claimRuns } from '../support/pending-runs.ts';
import { createInstance } from '../support/pipeline.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { targetAt } from '../support/targets.ts';
import { startsFindNoRow } from '../support/refused.ts';

const POLICY = { maxRecoveries: 3, maxRecoveryAgeSeconds: 86_400, lockTtlSeconds: 120 };

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
const instance = eachTest(() => instanceOfTest(store));
let dead: string;

beforeEach(async () => {
  dead = randomUUID();
  await register(dead);
  await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${dead}`);
});

const register = (id: string, ttlSeconds = 10) =>
  store.database.run((db) =>
    registerUnlessObserving(db, { id, host: 'test', version: 'test', zoneData: 'test', ttlSeconds }),
  );

interface RunRow {
  id: string;
  lane: string;
  schedule_id: string;
  status: string;
  reason: string | null;
  attempts: number;
  failures: number;
  recoveries: number;
  claimed_by: string | null;
  lost_at: string | null;
  handed_off_at: string | null;
  handoff_started_at: string | null;
  in_doubt_until: string | null;
  error: { kind: string; message: string } | null;
}

const runs = () => store.rows<RunRow>(sql`SELECT * FROM all_runs ORDER BY scheduled_for DESC, id`);
const run = async () => {
  const [first] = await runs();
  if (!first) throw new Error('there is no run');
  return first;
};
const ended = () =>
  until(async () => {
    const all = await runs();
    return all.every((row) => row.status !== 'pending') ? all : null;
  });

/** Runs as an instance leaves them that dies with their claims. */
async function lostRuns(
  definition: Partial<Definition> = {},
  claim: { by?: string; count?: number; started?: boolean; trigger?: string } = {},
): Promise<void> {
  const { by = dead, count = 1, started = false, trigger = 'schedule' } = claim;
  await instance.put('lost', { url: receiver.url, ...definition });
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status,
      lane, priority, due_at, ready, attempts, claimed_by, claimed_at, handoff_started_at, created_at, updated_at)
    SELECT ${runIdAt(sql`due`)}, due, uid, version, id, ${trigger}, 'pending', lane, priority, due, true, 1, ${by}, due,
      CASE WHEN ${started} THEN due END, due, due
    FROM schedules, LATERAL (SELECT date_trunc('milliseconds', clock_timestamp()) - make_interval(secs => 1 + n) AS due
      FROM generate_series(1, ${count}) n) d
    WHERE schedules.id = 'lost'`);
}

/** A recovery loop beside the instance's pipeline, and what it told. */
function startRecovery(overrides: Partial<Parameters<typeof createRecovery>[0]> = {}) {
  const events: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  const loop = createRecovery({
    ...POLICY,
    database: store.database,
    clock: systemClock,
    events: bus,
    lease: instance.lease,
    intervalSeconds: 0.05,
    lostAfterSeconds: 300,
    hasClaim: (runId, attempt) => instance.pipeline.dispatchers.hasClaim(runId, attempt),
    wake: instance.pipeline.wake,
    ...overrides,
  });
  void loop.start();
  const passes = () => events.filter(({ type }) => type === 'recoveryFinished').length;
  /** Passes that begin from now on; the one that is under way may have looked already. */
  const looked = async () => {
    const before = passes();
    await until(() => passes() > before + 2 || null);
  };
  return { events, looked, stop: () => loop.stop() };
}

/** One pass over what instances that are gone have left. */
async function recoverOrphans(policy: Partial<typeof POLICY> = {}) {
  const claims = await store.database.run((db) => findOrphans(db, { limit: 500, besides: [] }));
  const taken = await store.database.transaction((tx) =>
    takeOverIfStillClaimed(tx, claims, { ...POLICY, ...policy }, 'skipLocked'),
  );
  return taken.runs;
}

const lookups = async () =>
  (
    await store.rows<{ lookup: string | null }>(sql`SELECT entry->>'lookup' AS lookup
      FROM all_runs, jsonb_array_elements(attempt_log) AS entry ORDER BY (entry->>'attempt')::int`)
  ).map((row) => row.lookup);

const log = () =>
  store.rows<{ attempt: number; outcome: string; instance_id: string; recovery: boolean }>(
    sql`SELECT (entry->>'attempt')::int AS attempt, entry->>'outcome' AS outcome, entry->>'instanceId' AS instance_id,
      (entry->>'recovery')::boolean AS recovery
    FROM all_runs, jsonb_array_elements(attempt_log) AS entry ORDER BY 1`,
  );

describe('a run whose instance is gone', () => {
  it('is continued under its id by another one, which tells the target that it was recovered', async () => {
    await lostRuns({ payload: '{"a":1}' });
    const { id } = await run();
    await instance.start();
    const recovery = startRecovery();
    expect(await ended()).toMatchObject([{ id, status: 'succeeded', attempts: 2, recoveries: 1, failures: 0 }]);
    await recovery.stop();
    expect((await run()).lost_at).not.toBeNull();
    const [arrival] = receiver.arrivals;
    expect(arrival?.headers['idempotency-key']).toBe(id);
    expect(arrival?.body).toMatchObject({
      runId: id,
      attempt: 2,
      recovery: { recoveries: 1, recoveredAt: expect.stringMatching(/^20\d\d-.*Z$/) as string },
      payload: { a: 1 },
    });
    expect(await log()).toEqual([
      { attempt: 1, outcome: 'unknown', instance_id: dead, recovery: false },
      { attempt: 2, outcome: 'accepted', instance_id: instance.id, recovery: true },
    ]);
    const [settled] = instance.events.filter((event) => event.type === 'runSettled');
    expect(settled).toMatchObject({ settlement: { status: 'succeeded', recovered: true } });
    expect(recovery.events).toContainEqual({
      type: 'runsTakenOver',
      found: 'orphaned',
      runs: [{ runId: id, scheduleId: 'lost', notifierId: null, instanceId: dead, verdict: 'again' }],
    });
  });

  it('is found by its row, also if no instance of that id was ever listed', async () => {
    await lostRuns({}, { by: randomUUID() });
    expect(await recoverOrphans()).toMatchObject([{ verdict: 'again' }]);
  });

  it('is left alone while its instance is only silent, not declared dead', async () => {
    const silent = randomUUID();
    await register(silent);
    await store.rows(sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '1 day' WHERE id = ${silent}`);
    await lostRuns({}, { by: silent });
    expect(await recoverOrphans()).toEqual([]);
  });

  it('is abandoned with the reason, if recovery must give it up', async () => {
    await lostRuns({}, { count: 4 });
    await store.rows(sql`WITH numbered AS (SELECT id, row_number() OVER (ORDER BY scheduled_for DESC) AS n FROM all_runs)
      UPDATE runs SET recoveries = CASE n WHEN 2 THEN 3 ELSE 0 END,
        due_at = CASE n WHEN 3 THEN due_at - interval '2 days' ELSE due_at END,
        created_at = CASE n WHEN 3 THEN created_at - interval '2 days' ELSE created_at END,
        schedule_uid = CASE n WHEN 4 THEN gen_random_uuid() ELSE schedule_uid END
      FROM numbered WHERE runs.id = numbered.id`);
    const verdicts = (await recoverOrphans()).map((row) => row.verdict).sort();
    expect(verdicts).toEqual(['again', 'age', 'deleted', 'recoveries']);
    const [again, ...given] = await runs();
    expect(again).toMatchObject({ status: 'pending', recoveries: 1, claimed_by: null });
    expect(given).toMatchObject([
      { status: 'abandoned', reason: 'recoveries', recoveries: 3, claimed_by: dead },
      { status: 'abandoned', reason: 'age' },
      { status: 'abandoned', reason: 'deleted' },
    ]);
    expect((await runs()).every((row) => row.lost_at !== null)).toBe(true);
  });

  it.each([
    [
      'goes on if its first attempt is young, however long it had waited for a place or for maintenance to end',
      '1 hour',
      'again',
    ],
    ['is abandoned if its first attempt is too old', '2 days', 'age'],
  ])('%s', async (_, begun, verdict) => {
    await lostRuns();
    await store.rows(sql`UPDATE runs SET due_at = due_at - interval '9 days', created_at = created_at - interval '9 days',
      first_claimed_at = clock_timestamp() - ${begun}::interval`);
    expect(await recoverOrphans()).toMatchObject([{ verdict }]);
  });

  it('of a paused schedule is abandoned if it was planned, and goes on if a caller asked for it', async () => {
    await lostRuns({ enabled: false }, { count: 2 });
    await store.rows(sql`UPDATE runs SET trigger = 'manual' WHERE id = (SELECT min(id::text)::uuid FROM all_runs)`);
    await recoverOrphans();
    const rows = await store.rows<{ trigger: string; status: string; reason: string | null }>(
      sql`SELECT trigger, status, reason FROM all_runs ORDER BY trigger`,
    );
    expect(rows).toEqual([
      { trigger: 'manual', status: 'pending', reason: null },
      { trigger: 'schedule', status: 'abandoned', reason: 'disabled' },
    ]);
  });

  it('that goes on after its catch-up is not too old because of the fires that it stands for', async () => {
    await lostRuns({}, { trigger: 'catchUp' });
    await store.rows(
      sql`UPDATE runs SET id = ${runIdAt(sql`scheduled_for - interval '9 days'`)},
        scheduled_for = scheduled_for - interval '9 days', due_at = due_at - interval '9 days'`,
    );
    expect(await recoverOrphans()).toMatchObject([{ verdict: 'again' }]);
  });

  it('does not wait for a row that cannot be judged', async () => {
    await lostRuns({}, { count: 3 });
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT schedule_uid, 98, schedule_id, 'updated', at, '{"timeoutSeconds": "soon", "target": 7, "delivery": {}}'::jsonb
      FROM schedule_versions`);
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      SELECT schedule_uid, 99, schedule_id, 'updated', at, '{"timeoutSeconds": 1e300}'::jsonb
      FROM schedule_versions WHERE version = 1`);
    await store.rows(sql`WITH numbered AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM all_runs)
      UPDATE runs SET schedule_version = CASE n WHEN 1 THEN 98 WHEN 2 THEN 99 ELSE schedule_version END,
        claimed_at = claimed_at - interval '1 day'
      FROM numbered WHERE runs.id = numbered.id`);
    await instance.start();
    const recovery = startRecovery();
    await until(async () => ((await runs()).some((row) => row.status === 'succeeded') ? true : null));
    await recovery.stop();
    expect((await runs()).every((row) => row.recoveries > 0)).toBe(true);
    expect(recovery.events.filter((event) => event.type === 'loopFailed')).toEqual([]);
  });

  it('is taken over once by two recovery loops at the same time', async () => {
    await lostRuns({}, { count: 300 });
    const [first, second] = await Promise.all([recoverOrphans(), recoverOrphans()]);
    const again = await recoverOrphans();
    const taken = [...first, ...second, ...again].map((row) => row.runId);
    expect(taken).toHaveLength(300);
    expect(new Set(taken).size).toBe(300);
    expect((await runs()).every((row) => row.recoveries === 1)).toBe(true);
  });

  it('is settled by the 2xx that its old instance brings back late', async () => {
    const other = await createInstance(store);
    let answer: (() => void) | undefined;
    const slow = await startReceiver((_arrival, response) => {
      answer = () => response.end('{"executionId":"e1"}');
    });
    await lostRuns(
      {
        target: targetAt(slow.url),
      },
      { by: other.id },
    );
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await other.start();
    await until(() => (slow.arrivals.length === 1 ? true : null));
    await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${other.id}`);
    expect(await recoverOrphans()).toMatchObject([{ verdict: 'again', instanceId: other.id }]);
    await until(() => Promise.resolve(answer ? true : null));
    answer?.();
    const [settled] = await ended();
    expect(settled).toMatchObject({ status: 'succeeded', recoveries: 1, claimed_by: other.id });
    expect(await log()).toMatchObject([{ attempt: 1, outcome: 'accepted', instance_id: other.id }]);
    await other.stop();
    await slow.close();
  });

  it('is not sent again by a process that still has it under way, under its earlier id', async () => {
    let answer: (() => void) | undefined;
    const slow = await startReceiver((_arrival, response) => {
      answer = () => response.end('{}');
    });
    await lostRuns({
      target: targetAt(slow.url),
    });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await instance.start();
    await until(() => (slow.arrivals.length === 1 ? true : null));
    await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${instance.id}`);
    instance.lease.replace();
    await register(instance.lease.instanceId);
    instance.lease.renew(instance.lease.moment());
    await recoverOrphans();
    await lostRuns({ description: 'another version' });
    await recoverOrphans();
    // The other one, which became due earlier, shows that the dispatcher has claimed since.
    await until(async () => ((await runs()).some((row) => row.status === 'succeeded') ? true : null));
    expect(slow.arrivals).toHaveLength(1);
    answer?.();
    expect((await ended()).map((row) => row.status)).toEqual(['succeeded', 'succeeded']);
    expect(slow.arrivals).toHaveLength(1);
    await slow.close();
  });
});

describe('a claim that its instance does not know of', () => {
  it('is lost as well, after a statement’s time limit, and taken over', async () => {
    await instance.start();
    await lostRuns({}, { by: instance.id });
    const { clock, pass } = passingClock();
    const recovery = startRecovery({ clock });
    await recovery.looked();
    pass(STATEMENT_LIMIT_MS);
    const [row] = await ended();
    await recovery.stop();
    expect(row).toMatchObject({ status: 'succeeded', attempts: 2, recoveries: 1 });
    expect(recovery.events).toContainEqual(expect.objectContaining({ type: 'runsTakenOver', found: 'forgotten' }));
  });

  it('is not confused with one that is held for long', async () => {
    let answer: (() => void) | undefined;
    const slow = await startReceiver((_arrival, response) => {
      answer = () => response.end('{}');
    });
    await lostRuns({
      target: targetAt(slow.url),
    });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await instance.start();
    const { clock, pass } = passingClock();
    const recovery = startRecovery({ clock });
    await until(() => (slow.arrivals.length === 1 ? true : null));
    await recovery.looked();
    pass(STATEMENT_LIMIT_MS);
    await recovery.looked();
    answer?.();
    expect(await ended()).toMatchObject([{ status: 'succeeded', attempts: 1, recoveries: 0 }]);
    await recovery.stop();
    await slow.close();
  });
});

describe('a claim that is too old', () => {
  it('is lost whatever is known about its instance, once its attempt must long be over', async () => {
    const living = randomUUID();
    await register(living, 3600);
    await lostRuns({ timeoutSeconds: 60 }, { by: living, count: 2 });
    await store.rows(sql`UPDATE runs SET claimed_at = clock_timestamp() - CASE WHEN id = (SELECT min(id::text)::uuid FROM all_runs)
      THEN interval '350 seconds' ELSE interval '361 seconds' END`);
    await instance.start();
    const { clock, pass } = passingClock();
    const recovery = startRecovery({ clock });
    await recovery.looked();
    // That the database's clock says so is not enough: it may have stepped.
    expect((await runs()).map((row) => row.recoveries)).toEqual([0, 0]);
    pass(301_000);
    await until(async () => ((await runs()).some((row) => row.status === 'succeeded') ? true : null));
    await recovery.stop();
    expect((await runs()).map((row) => row.recoveries).sort()).toEqual([0, 1]);
    expect(recovery.events).toContainEqual(expect.objectContaining({ type: 'runsTakenOver', found: 'expired' }));
  });
});

describe('at most once', () => {
  it('a run that was lost before its handoff began is sent, once', async () => {
    await lostRuns({ delivery: 'atMostOnce' });
    await instance.start();
    const recovery = startRecovery();
    expect(await ended()).toMatchObject([{ status: 'succeeded', attempts: 2, recoveries: 1 }]);
    await recovery.stop();
    expect(receiver.arrivals).toHaveLength(1);
    expect(await log()).toMatchObject([{ outcome: 'transient' }, { outcome: 'accepted' }]);
  });

  it('a run that was lost while it was handed off stays unknown and is never sent again', async () => {
    await lostRuns({ delivery: 'atMostOnce' }, { started: true });
    await instance.start();
    const recovery = startRecovery();
    const [row] = await ended();
    await recovery.stop();
    expect(row).toMatchObject({ status: 'unknown', reason: null, recoveries: 0, attempts: 1 });
    expect(row?.error?.message).toContain(dead);
    expect(row?.lost_at).not.toBeNull();
    expect(receiver.arrivals).toHaveLength(0);
  });

  it('a handoff is durable before its first byte', async () => {
    let started: RunRow | undefined;
    const looking = await startReceiver((_arrival, response) => {
      void run().then((row) => {
        started = row;
        response.end('{}');
      });
    });
    await instance.put('lost', { url: looking.url, delivery: 'atMostOnce' });
    await lostRuns({
      delivery: 'atMostOnce',
      target: targetAt(looking.url),
    });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await instance.start();
    await ended();
    expect(started?.handoff_started_at).not.toBeNull();
    expect(started?.status).toBe('pending');
    await looking.close();
  });

  it('a claim that was lost meanwhile is not sent', async () => {
    await lostRuns({ delivery: 'atMostOnce' });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    // As if somebody else had claimed it since.
    await startsFindNoRow(store);
    await instance.start();
    await until(async () => ((await run()).attempts >= 2 ? true : null));
    expect(receiver.arrivals).toHaveLength(0);
    expect(await run()).toMatchObject({ status: 'pending', failures: 0 });
  });
});

describe('a run in doubt', () => {
  let asked: number;
  let says: number;
  let book: Receiver;

  beforeEach(async () => {
    asked = 0;
    says = 404;
    book = await startReceiver((_arrival, response) => {
      asked += 1;
      response.statusCode = says;
      response.end('{"executionId":"known"}');
    });
  });
  afterEach(() => book.close());

  const withLookup = (given: Partial<Definition> = {}): Partial<Definition> => ({
    retry: { maxAttempts: 3, minBackoffSeconds: 0, maxBackoffSeconds: 1 },
    target: targetAt(receiver.url, { lookup: { url: `${book.url}/{{runId}}`, method: 'GET', headers: {} } }),
    ...given,
  });
  const recoverAndEnd = async () => {
    await recoverOrphans();
    await instance.start();
    return ended();
  };

  it('is linked and not repeated if the target has it', async () => {
    says = 200;
    await lostRuns(withLookup());
    expect(await recoverAndEnd()).toMatchObject([{ status: 'succeeded', execution_id: 'known', in_doubt_until: null }]);
    expect(asked).toBe(1);
    expect(receiver.arrivals).toHaveLength(0);
    expect(await lookups()).toEqual([null, 'arrived']);
    expect((await run()).handoff_started_at).toBeNull();
  });

  it('is sent again if the target does not have it', async () => {
    await lostRuns(withLookup());
    expect(await recoverAndEnd()).toMatchObject([{ status: 'succeeded' }]);
    expect([asked, receiver.arrivals.length]).toEqual([1, 1]);
    expect(await lookups()).toEqual([null, 'notArrived']);
  });

  it('is asked about several times, then sent again under at least once', async () => {
    says = 500;
    await lostRuns(withLookup());
    expect(await recoverAndEnd()).toMatchObject([{ status: 'succeeded' }]);
    expect([asked, receiver.arrivals.length]).toEqual([3, 1]);
    expect(await lookups()).toEqual([null, 'unclear', 'unclear', 'unclear']);
  });

  it('is asked about several times, then left unknown under at most once', async () => {
    says = 500;
    await lostRuns(withLookup({ delivery: 'atMostOnce' }), { started: true });
    await recoverOrphans();
    await store.rows(sql`UPDATE runs SET due_at = clock_timestamp(), in_doubt_until = clock_timestamp()`);
    await instance.start();
    expect(await ended()).toMatchObject([{ status: 'unknown' }]);
    expect([asked, receiver.arrivals.length]).toEqual([3, 0]);
  });

  it('under at most once is asked about at once, and has ended if the target has it', async () => {
    says = 200;
    await lostRuns(withLookup({ delivery: 'atMostOnce', timeoutSeconds: 30 }), { started: true });
    expect(await recoverAndEnd()).toMatchObject([{ status: 'succeeded', execution_id: 'known', in_doubt_until: null }]);
    expect([asked, receiver.arrivals.length]).toEqual([1, 0]);
  });

  it('under at most once is not sent before nothing of the lost attempt can still arrive, whatever the target says', async () => {
    await lostRuns(withLookup({ delivery: 'atMostOnce', timeoutSeconds: 30 }), { started: true });
    await recoverOrphans();
    await instance.start();
    const waits = () =>
      store.rows<{ seconds: number; lookups: number; failures: number }>(
        sql`SELECT extract(epoch FROM due_at - scheduled_for)::float8 AS seconds, lookups, failures FROM runs
        WHERE claimed_by IS NULL AND due_at = in_doubt_until`,
      );
    const [row] = await until(async () => ((await waits()).length > 0 ? waits() : null));
    expect(row).toEqual({ seconds: 30 + POLICY.lockTtlSeconds, lookups: 0, failures: 0 });
    expect([asked, receiver.arrivals.length]).toEqual([1, 0]);
    expect(await lookups()).toEqual([null, 'notArrived']);
    await store.rows(sql`UPDATE runs SET due_at = clock_timestamp(), in_doubt_until = clock_timestamp()`);
    instance.pipeline.dispatcher.wake();
    expect(await ended()).toMatchObject([{ status: 'succeeded' }]);
    expect([asked, receiver.arrivals.length]).toEqual([2, 1]);
  });

  it('under at most once is not sent again because the instance that asked died', async () => {
    await lostRuns(withLookup({ delivery: 'atMostOnce' }), { started: true });
    await recoverOrphans();
    await store.rows(sql`UPDATE runs SET claimed_by = ${dead}, claimed_at = clock_timestamp(), attempts = 2`);
    expect(await recoverOrphans()).toMatchObject([{ verdict: 'again' }]);
    const row = await run();
    expect(row.in_doubt_until).not.toBeNull();
    await store.rows(sql`UPDATE runs SET claimed_by = ${dead}, claimed_at = clock_timestamp(), recoveries = 3`);
    expect(await recoverOrphans()).toMatchObject([{ verdict: 'unknown' }]);
  });
});

describe('a claim that has waited', () => {
  it('is confirmed before it is sent: its schedule may be deleted', async () => {
    const owed: (() => void)[] = [];
    const slow = await startReceiver((_arrival, response) => {
      owed.push(() => response.end('{}'));
    });
    const { databaseClock, pass } = passingDatabaseClock();
    const narrow = await createInstance(store, { concurrency: 1, concurrencyPerLane: 1, databaseClock });
    await instance.put('first', { url: slow.url });
    await lostRuns(
      {
        target: targetAt(slow.url),
      },
      { count: 2 },
    );
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await narrow.start();
    await until(async () => ((await runs()).filter((row) => row.claimed_by !== null).length === 2 ? true : null));
    await until(() => (owed.length === 1 ? true : null));
    await instance.remove('lost');
    pass(1_100);
    owed[0]?.();
    await until(() => (narrow.pipeline.dispatcher.claimed() === 0 ? true : null));
    expect(slow.arrivals).toHaveLength(1);
    expect((await runs()).map((row) => row.status)).toEqual(['abandoned', 'abandoned']);
    await narrow.stop();
    await slow.close();
  });
});

describe('an instance whose lease is not valid', () => {
  it('sends nothing of what it has claimed, and goes on once a heartbeat is answered', async () => {
    await lostRuns({}, { count: 3 });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    const { lane } = await run();
    const { dispatcher } = instance.pipeline;
    expect([dispatcher.reserve(lane), dispatcher.reserve(lane)]).toEqual([true, true]);
    const now = instance.lease.moment();
    instance.lease.renew({ monotonic: now.monotonic - 7_200_000, wall: now.wall - 7_200_000 });
    await instance.start();
    dispatcher.accept(await claimRuns(store, instance.id, 2));
    await until(() => (instance.events.some((event) => event.type === 'tickFinished') ? true : null));
    expect((await runs()).filter((row) => row.claimed_by !== null)).toHaveLength(2);
    expect(receiver.arrivals).toHaveLength(0);
    instance.lease.renew(instance.lease.moment());
    expect((await ended()).every((row) => row.status === 'succeeded' && row.attempts === 1)).toBe(true);
    expect(receiver.arrivals).toHaveLength(3);
  });
});

describe('an instance that was declared dead', () => {
  it('locks and claims nothing more under that id, and drops its unsent claims', async () => {
    await lostRuns({}, { count: 3 });
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, attempts = 0`);
    await store.rows(
      sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '2 hours' WHERE id = ${instance.id}`,
    );
    const peer = await createInstance(store);
    expect(await store.database.run((db) => declareDeadIfSilent(db, peer.id, [instance.id]))).toEqual([instance.id]);
    await instance.start();
    await until(() => (instance.events.some((event) => event.type === 'tickFinished') ? true : null));
    await until(
      () => instance.events.some((event) => event.type === 'loopPassed' && event.loop === 'dispatch') || null,
    );
    expect((await runs()).every((row) => row.claimed_by === null)).toBe(true);
    await peer.stop();
  });

  it('is not declared dead by one that is itself silent, nor while it beats', async () => {
    const silent = randomUUID();
    await register(silent);
    expect(await store.database.run((db) => declareDeadIfSilent(db, instance.id, [silent]))).toEqual([]);
    await store.rows(
      sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '11 seconds' WHERE id = ${silent}`,
    );
    expect(await store.database.run((db) => declareDeadIfSilent(db, dead, [silent]))).toEqual([]);
    expect(await store.database.run((db) => declareDeadIfSilent(db, instance.id, [silent]))).toEqual([silent]);
  });
});
