import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { createSettler } from '../../src/flow/settle.ts';
import { createHeartbeat } from '../../src/recovery/heartbeat.ts';
import { createDatabaseClock, systemClock } from '../../src/runtime/clock.ts';
import { type ConfirmedCommits, createConfirmedCommits } from '../../src/runtime/confirmed-commits.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { type Lease, createLease } from '../../src/runtime/instance-lease.ts';
import { createInstallationWatch } from '../../src/runtime/installation-watch.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { eachTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres/postgres-proxy.ts';
import { endedAttempt, plainSuccess } from '../support/claims.ts';
import { NO_WAKE } from '../support/working.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

/** As short as the lease's margin allows. */
const TTL_SECONDS = 3;
const INTERVAL_SECONDS = 0.1;

const store = eachTest(storeOfTest);
let proxy: PostgresProxy;
/** By way of the proxy. */
let cuttable: Database;
let cleanUp: (() => Promise<void>)[];

beforeEach(async () => {
  cleanUp = [];
  proxy = await startPostgresProxy(store.url);
  cuttable = openDatabase(proxy.url, 4);
});

afterEach(async () => {
  await proxy.restore();
  for (const step of cleanUp.splice(0).reverse()) await step();
  await cuttable.close();
  await proxy.close();
});

interface Beating {
  lease: Lease;
  commits: ConfirmedCommits;
  events: FirelockEvent[];
  eventsOf<T extends FirelockEvent['type']>(type: T): Extract<FirelockEvent, { type: T }>[];
  /** Resolves once that many more beats are answered. */
  beats(count: number): Promise<void>;
  wakings(): number;
}

/** The heartbeat of one instance, and what it tells. */
async function startHeartbeat(
  given: {
    lease?: Lease;
    commits?: ConfirmedCommits;
    flush?: () => Promise<void>;
    onObserving?: () => void;
    onEvent?: (event: FirelockEvent) => void;
  } = {},
): Promise<Beating> {
  const lease = given.lease ?? createLease(systemClock, TTL_SECONDS);
  const events: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => {
    events.push(event);
    given.onEvent?.(event);
  });
  let wakings = 0;
  const databaseClock = createDatabaseClock(systemClock);
  const commits = given.commits ?? createConfirmedCommits(systemClock);
  const loop = createHeartbeat({
    database: cuttable,
    clock: systemClock,
    databaseClock,
    commits,
    installation: createInstallationWatch({ events: bus, clock: systemClock, databaseClock }, false),
    onObserving: given.onObserving ?? (() => undefined),
    events: bus,
    lease,
    instance: { host: 'test', version: 'test', zoneData: 'test', ttlSeconds: TTL_SECONDS },
    intervalSeconds: INTERVAL_SECONDS,
    flush: given.flush ?? (() => Promise.resolve()),
    wakeRecovery: () => (wakings += 1),
  });
  await loop.start();
  cleanUp.push(async () => loop.stop());
  const eventsOf: Beating['eventsOf'] = (type) =>
    events.filter((event): event is Extract<FirelockEvent, { type: typeof type }> => event.type === type);
  const beats = async (count: number): Promise<void> => {
    const wanted = eventsOf('heartbeat').length + count;
    await until(() => eventsOf('heartbeat').length >= wanted || null);
  };
  return { lease, commits, events, eventsOf, beats, wakings: () => wakings };
}

interface InstanceRow {
  id: string;
  dead: boolean;
}

const instanceRow = async (id: string): Promise<InstanceRow | undefined> => {
  const [row] = await store.rows<InstanceRow>(
    sql`SELECT id, died_at IS NOT NULL AS dead FROM instances WHERE id = ${id}`,
  );
  return row;
};

/** A silent instance: registered, without a heartbeat for an hour. */
async function silentPeer(ttlSeconds = TTL_SECONDS): Promise<string> {
  const id = randomUUID();
  await store.database.run((db) =>
    registerUnlessObserving(db, { id, host: 'test', version: 'test', zoneData: 'test', ttlSeconds }),
  );
  await store.rows(sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = ${id}`);
  return id;
}

async function outage(): Promise<void> {
  await proxy.interrupt('refuse');
}

const failures = (beating: Beating) => beating.eventsOf('loopFailed').length;

describe('an instance that was declared dead', () => {
  it('comes back under another id, is listed, says so, and its lease is valid again', async () => {
    const validThen: boolean[] = [];
    const lease = createLease(systemClock, TTL_SECONDS);
    const beating = await startHeartbeat({
      lease,
      onEvent: ({ type }) => {
        if (type === 'instanceReplaced') validThen.push(lease.isValid());
      },
    });
    await beating.beats(2);
    const previousId = lease.instanceId;
    let changes = 0;
    lease.onChange(() => {
      if (lease.instanceId !== previousId) changes += 1;
    });
    await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${previousId}`);

    await until(() => beating.eventsOf('instanceReplaced').length > 0 || null);
    await beating.beats(1);
    const { instanceId } = lease;
    expect(instanceId).not.toBe(previousId);
    expect(beating.eventsOf('instanceReplaced')).toEqual([{ type: 'instanceReplaced', instanceId, previousId }]);
    expect(validThen).toEqual([false]);
    await until(() => lease.isValid() || null);
    expect(changes).toBeGreaterThanOrEqual(2);
    expect(await instanceRow(instanceId)).toEqual({ id: instanceId, dead: false });
    expect(await instanceRow(previousId)).toEqual({ id: previousId, dead: true });
    expect(beating.eventsOf('instanceRegistered').map((event) => event.instanceId)).toEqual([previousId, instanceId]);
    expect(beating.eventsOf('databaseWentBack')).toEqual([]);
  });

  it('and cannot register at once keeps nothing until it is listed', async () => {
    const beating = await startHeartbeat();
    await beating.beats(1);
    const previousId = beating.lease.instanceId;
    await store.rows(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN RAISE 'not now' USING ERRCODE = '53300'; END $$`);
    await store.rows(sql`CREATE TRIGGER refuse BEFORE INSERT ON instances FOR EACH ROW EXECUTE FUNCTION refuse()`);
    await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${previousId}`);
    await until(() => failures(beating) > 1 || null);
    expect(beating.lease.instanceId).not.toBe(previousId);
    expect(beating.lease.isValid()).toBe(false);

    await store.rows(sql`DROP TRIGGER refuse ON instances`);
    await until(() => beating.lease.isValid() || null);
    const { instanceId } = beating.lease;
    expect(await instanceRow(instanceId)).toEqual({ id: instanceId, dead: false });
    // It lost nothing that it had been told was kept: that row was never confirmed.
    expect(beating.eventsOf('databaseWentBack')).toEqual([]);
  });
});

it('an instance that was declared dead, and whose database only observes since then, learns it and sends nothing', async () => {
  let told = false;
  const beating = await startHeartbeat({ onObserving: () => (told = true) });
  const { lease } = beating;
  await beating.beats(1);
  await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${lease.instanceId}`);
  await store.rows(sql`UPDATE installation SET mode = 'observes', mode_since = clock_timestamp()`);
  await until(() => told || null);
  expect([lease.isValid(), beating.eventsOf('instanceRegistered')]).toEqual([false, [expect.anything()]]);
  expect(await instanceRow(lease.instanceId)).toBeUndefined();
});

describe('a silent peer', () => {
  it('is declared dead after a whole TTL of own beats, not before, and recovery is woken', async () => {
    const silent = await silentPeer();
    const patient = await silentPeer(7200);
    const beating = await startHeartbeat();
    await until(() => beating.eventsOf('instancesDeclaredDead').length > 0 || null);
    await beating.beats(2);
    expect(beating.eventsOf('instancesDeclaredDead')).toEqual([
      { type: 'instancesDeclaredDead', instanceIds: [silent] },
    ]);
    expect(beating.wakings()).toBe(1);
    expect(await instanceRow(patient)).toEqual({ id: patient, dead: false });
    const [row] = await store.rows<{ seconds: number }>(
      sql`SELECT extract(epoch FROM died_at - (SELECT started_at FROM instances WHERE id = ${beating.lease.instanceId}))::float8
        AS seconds FROM instances WHERE id = ${silent}`,
    );
    expect(row?.seconds).toBeGreaterThanOrEqual(TTL_SECONDS);
  });

  it('is not declared dead because of an outage that silenced every instance', { tags: [LONG] }, async () => {
    const [one, other] = [await startHeartbeat(), await startHeartbeat()];
    const before = await silentPeer();
    await until(async () => (await instanceRow(before))?.dead === true || null);
    const ids = [one.lease.instanceId, other.lease.instanceId];

    await outage();
    // Long enough for each to be overdue in the eyes of the other.
    await until(async () => {
      const [row] = await store.rows<{ overdue: number }>(
        sql`SELECT count(*)::int AS overdue FROM instances WHERE died_at IS NULL
          AND heartbeat_at < clock_timestamp() - make_interval(secs => ttl_seconds)`,
      );
      return row?.overdue === 2 || null;
    });
    const after = await silentPeer();
    const [restored] = await store.rows<{ at: string }>(sql`SELECT clock_timestamp()::text AS at`);
    await proxy.restore();

    await until(async () => (await instanceRow(after))?.dead === true || null);
    for (const [index, beating] of [one, other].entries()) {
      await beating.beats(2);
      expect(beating.lease.instanceId).toBe(ids[index]);
      expect(beating.eventsOf('instanceReplaced')).toEqual([]);
      await until(() => beating.lease.isValid() || null);
    }
    const dead = [one, other].flatMap((beating) => beating.eventsOf('instancesDeclaredDead'));
    expect(dead.flatMap(({ instanceIds }) => instanceIds).sort()).toEqual([before, after].sort());
    const [row] = await store.rows<{ seconds: number }>(
      sql`SELECT extract(epoch FROM died_at - ${restored?.at ?? ''}::timestamptz)::float8 AS seconds
        FROM instances WHERE id = ${after}`,
    );
    expect(row?.seconds).toBeGreaterThanOrEqual(TTL_SECONDS);
  });
});

it('outcomes of an outage are written before the first beat after it, and at no other time', async () => {
  /** What the database had as the instance's last beat when the flush was through. */
  const seen: string[] = [];
  const lease = createLease(systemClock, TTL_SECONDS);
  const lastBeat = async (database: Database): Promise<string> => {
    const statement = sql`SELECT heartbeat_at::text AS at FROM instances WHERE id = ${lease.instanceId}`;
    const [row] = (await database.run((db) => db.execute(statement))) as unknown as { at: string }[];
    return row?.at ?? '';
  };
  const beating = await startHeartbeat({
    lease,
    // Like the settler's: what cannot be written is not its caller's matter.
    flush: () =>
      lastBeat(cuttable).then(
        (at) => void seen.push(at),
        () => undefined,
      ),
  });
  await beating.beats(5);
  expect(seen).toEqual([]);

  await outage();
  const before = await lastBeat(store.database);
  await until(() => failures(beating) > 2 || null);
  await proxy.restore();
  await beating.beats(5);
  expect(seen.length).toBeGreaterThan(0);
  expect(new Set(seen)).toEqual(new Set([before]));
  const flushes = seen.length;
  await beating.beats(5);
  expect(seen).toHaveLength(flushes);
});

describe('a database that lost commits', () => {
  it('is reported once, with how much is gone, and the instance goes on as it is', async () => {
    const beating = await startHeartbeat();
    await beating.beats(2);
    const { instanceId } = beating.lease;
    await store.rows(
      sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '1 minute' WHERE id = ${instanceId}`,
    );
    await until(() => beating.eventsOf('databaseWentBack').length > 0 || null);
    await beating.beats(3);
    const [first, ...others] = beating.eventsOf('databaseWentBack');
    // The row keeps milliseconds, rounded.
    expect(Math.abs((first?.lostMs ?? NaN) - 60_000)).toBeLessThanOrEqual(1);
    expect(others).toEqual([]);
    expect(beating.lease.instanceId).toBe(instanceId);
    await until(() => beating.lease.isValid() || null);
  });

  it('and with them the instance is reported, and the instance comes back under another id', async () => {
    const beating = await startHeartbeat();
    await beating.beats(2);
    const previousId = beating.lease.instanceId;
    await store.rows(sql`DELETE FROM instances`);
    await until(() => beating.eventsOf('instanceReplaced').length > 0 || null);
    await beating.beats(3);
    const { instanceId } = beating.lease;
    expect(instanceId).not.toBe(previousId);
    expect(beating.eventsOf('databaseWentBack')).toEqual([{ type: 'databaseWentBack', lostMs: null }]);
    expect(await instanceRow(instanceId)).toEqual({ id: instanceId, dead: false });
    await until(() => beating.lease.isValid() || null);
  });
});

describe('a database that lost commits, and no heartbeat', () => {
  /** What an instance has noted of fires that have succeeded since, or of those that are under way. */
  async function commitsOf(work: 'done' | 'under way'): Promise<ConfirmedCommits> {
    const receiver = await startReceiver((_, response) => {
      if (work === 'done') response.end('{}');
    });
    const instance = await createInstance(store);
    await instance.put('each-second', { url: receiver.url, cron: '* * * * * *' });
    await instance.start();
    const wanted = work === 'done' ? 'succeeded' : 'recorded';
    await until(() => instance.commits.noted().some(({ kind }) => kind === wanted) || null);
    await instance.stop();
    await receiver.close();
    return instance.commits;
  }

  it('is not reported where the runs are there, open or ended', async () => {
    for (const work of ['done', 'under way'] as const) {
      const commits = await commitsOf(work);
      const beating = await startHeartbeat({ commits });
      await until(() => commits.noted().length === 0 || null);
      await beating.beats(2);
      expect(beating.eventsOf('databaseWentBack')).toEqual([]);
    }
  });

  it.each([
    ['a run that it had recorded is gone', 'under way', sql`DELETE FROM runs`],
    ['a run that had succeeded is gone', 'done', sql`DELETE FROM history`],
    [
      'another instance has planned the run again, under its id',
      'under way',
      sql`UPDATE runs SET created_at = created_at + interval '10 seconds'`,
    ],
    [
      'a run that had succeeded was sent again',
      'done',
      sql`UPDATE history SET finished_at = finished_at + interval '10 seconds'`,
    ],
  ] as const)('is reported once: %s', async (_, work, loss) => {
    const commits = await commitsOf(work);
    await store.rows(loss);
    const beating = await startHeartbeat({ commits });
    await until(() => beating.eventsOf('databaseWentBack').length > 0 || null);
    await beating.beats(3);
    expect(beating.eventsOf('databaseWentBack')).toHaveLength(1);
    await until(() => beating.lease.isValid() || null);
  });

  it('is reported by the first beat after an outage, whatever was recorded since', async () => {
    const commits = await commitsOf('under way');
    await store.rows(sql`DELETE FROM runs`);
    const later = await commitsOf('under way');
    for (const one of later.noted()) commits.note(one);
    const beating = await startHeartbeat({ commits });
    await until(() => beating.eventsOf('databaseWentBack').length > 0 || null);
  });
});

it('without an answered beat the lease runs out, and claimed and due runs wait unsent until it is valid', async () => {
  const owed: (() => void)[] = [];
  const receiver = await startReceiver((_, response) => owed.push(() => response.end('{}')));
  const instance = await createInstance(store, { concurrency: 1, ttlSeconds: TTL_SECONDS });
  cleanUp.push(
    () => receiver.close(),
    () => instance.stop(),
  );
  const beating = await startHeartbeat({ lease: instance.lease });
  await instance.start();
  const due = () =>
    store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('second', clock_timestamp())
    - interval '1 second', next_fire_at = clock_timestamp(), timing = '{"cron":"* * * * * *"}' WHERE id = 'early'`);
  const statuses = () =>
    store.rows<{ status: string; claimed: boolean }>(
      sql`SELECT status, claimed_by IS NOT NULL AS claimed FROM all_runs ORDER BY created_at, scheduled_for`,
    );
  await instance.putMany(['early', 'late'], { url: receiver.url });
  await due();
  await receiver.arrived(1);
  await until(async () => (await statuses()).filter(({ claimed }) => claimed).length > 1 || null);

  await outage();
  await until(() => !instance.lease.isValid() || null);
  // The rest of the database is there, only the beats do not come through: everything else goes on.
  await store.rows(sql`UPDATE schedules SET enabled = false WHERE id = 'early'`);
  await store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('minute', clock_timestamp()),
    next_fire_at = clock_timestamp() WHERE id = 'late'`);
  await until(async () => (await statuses()).some(({ claimed }) => !claimed) || null);
  for (const answer of owed.splice(0)) answer();
  await until(async () => (await statuses()).some(({ status }) => status === 'succeeded') || null);
  expect(receiver.arrivals).toHaveLength(1);
  const meanwhile = (await statuses()).map(({ status }) => status).sort();
  expect(meanwhile).toEqual([...meanwhile.slice(1).fill('pending'), 'succeeded']);
  // The next minute may begin at any moment.
  await store.rows(sql`UPDATE schedules SET enabled = false`);

  await proxy.restore();
  const answering = setInterval(() => {
    for (const answer of owed.splice(0)) answer();
  }, 10);
  cleanUp.push(() => {
    clearInterval(answering);
    return Promise.resolve();
  });
  await until(async () => (await statuses()).every(({ status }) => status === 'succeeded') || null);
  expect(new Set(receiver.arrivals.map(({ body }) => body.runId)).size).toBe(receiver.arrivals.length);
  expect(receiver.arrivals).toHaveLength((await statuses()).length);
  expect(beating.eventsOf('instanceReplaced')).toEqual([]);
});

it('a beat after an outage does not wait for the outcomes of the outage, if writing them takes too long', async () => {
  const way = await startPostgresProxy(store.url);
  const silent = openDatabase(way.url, 1);
  const settler = createSettler({
    database: silent,
    clock: systemClock,
    commits: { note: () => undefined },
    concurrency: 8,
    events: createEventBus(),
    wake: NO_WAKE,
  });
  cleanUp.push(async () => {
    await way.restore();
    await settler.stop();
    await silent.close();
    await way.close();
  });
  await way.interrupt('hang');
  const success = plainSuccess({ runId: randomUUID(), instanceId: randomUUID(), at: Date.now() });
  const settlement = { ...success.settlement, status: 'failed' as const };
  settler.add(endedAttempt({ ...success, outcome: 'rejected', settlement }));
  await settler.start();
  const flushes = { begun: 0, ended: 0 };
  const beating = await startHeartbeat({
    flush: async () => {
      flushes.begun += 1;
      await settler.flush();
      flushes.ended += 1;
    },
  });
  await beating.beats(1);
  await outage();
  await until(() => failures(beating) > 0 || null);
  await proxy.restore();
  await beating.beats(2);
  expect(flushes.begun).toBeGreaterThan(0);
  expect(flushes.ended).toBe(0);
  await until(() => beating.lease.isValid() || null);
  expect(beating.eventsOf('instanceReplaced')).toEqual([]);
});
