// @module-tag long
import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { DAY_MS, isoInstant } from '../../src/core/instant.ts';
import { randomRunId } from '../../src/core/runs/run.ts';
import { type DropPartitionsDeps, createPartitionDropper } from '../../src/history/drop-partitions.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createPartition, dropPartition, listPartitions } from '../../src/postgres/history-partitions.ts';
import { storeOfTest } from '../support/of-test.ts';
import {
  dayAgo,
  endedIds,
  endedRun,
  endedRuns,
  makePartitions,
  partitionOf,
  partitions,
  whileHistoryIsRead,
} from '../support/history.ts';
import { type Store, createInstance } from '../support/pipeline.ts';
import { passingClock } from '../support/clocks.ts';
import { notingAll } from '../support/postgres/noting.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const DAYS = 30;
/** Older than history is kept. */
const OLD = 40;
/** Days with partitions that are to go, the oldest first; the last of them is the last that is. */
const TO_GO = [OLD, OLD - 1, DAYS + 2].map(dayAgo);
const NOON = DAY_MS / 2;
const noonAgo = (days: number) => dayAgo(days) + NOON;
/** Of the days so many days ago, the oldest first, and of those from today on. */
const named = (...daysAgo: number[]) => [...daysAgo, 0, -1, -2, -3].map((days) => partitionOf(dayAgo(days)));

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
  await makePartitions(store, [...TO_GO, dayAgo(DAYS + 1), dayAgo(DAYS)]);
});

interface Dropper {
  of<T extends FirelockEvent['type']>(type: T): Extract<FirelockEvent, { type: T }>[];
  /** Lets it look again; resolves once it has looked at all there is, or failed. */
  looks(): Promise<void>;
  stop(): Promise<void>;
}

function startDropper(overrides: Partial<DropPartitionsDeps> = {}): Dropper {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const { database } = store;
  const loop = createPartitionDropper({
    database,
    clock: systemClock,
    events: bus,
    retentionDays: DAYS,
    intervalMs: 1_000_000,
    ...overrides,
  });
  const of: Dropper['of'] = (type) =>
    events.filter((event): event is Extract<FirelockEvent, { type: typeof type }> => event.type === type);
  return {
    of,
    looks: async () => {
      const ends = () => of('historySeen').length;
      const before = ends();
      if (loop.passes() === 0) await loop.start();
      else loop.retry();
      await until(() => ends() > before || null);
    },
    stop: async () => {
      await loop.stop();
    },
  };
}

/** From the start until there is nothing left to drop: which days went, and how many definitions. */
async function dropAll(overrides: Partial<DropPartitionsDeps> = {}) {
  const dropper = startDropper(overrides);
  await dropper.looks();
  await dropper.stop();
  const dropped = dropper.of('historyDropped');
  return {
    days: dropped.flatMap(({ days }) => days),
    definitions: dropped.reduce((sum, { definitions }) => sum + definitions, 0),
  };
}

const edge = (runId: string, dependsOn: string) =>
  store.rows(sql`INSERT INTO run_dependencies (run_id, depends_on, position) VALUES (${runId}, ${dependsOn}, 0)`);
const edges = () =>
  store.rows<{ run_id: string; depends_on: string }>(
    sql`SELECT run_id, depends_on FROM run_dependencies ORDER BY run_id, depends_on`,
  );
const ONE_OFF = '00000000-0000-0000-0000-000000000000';
const takeKey = (key: string, runId: string, scope = ONE_OFF) =>
  store.rows(sql`INSERT INTO run_keys (scope, key, body_hash, run_id) VALUES (${scope}, ${key}, '', ${runId})`);
const keys = async () =>
  (await store.rows<{ key: string }>(sql`SELECT key FROM run_keys ORDER BY key, scope`)).map(({ key }) => key);

describe('days that are older than history is kept', () => {
  it('are dropped completely; younger ones stay', async () => {
    await endedRun(store, { endedAt: noonAgo(OLD) });
    await endedRun(store, { endedAt: noonAgo(OLD - 1), status: 'failed' });
    await endedRun(store, { endedAt: dayAgo(DAYS + 1) - 1, status: 'skipped' });
    const kept = [
      await endedRun(store, { endedAt: dayAgo(DAYS + 1) }),
      await endedRun(store, { endedAt: noonAgo(29) }),
      await endedRun(store, { endedAt: Date.now() }),
    ];
    expect(await dropAll()).toEqual({ days: TO_GO, definitions: 0 });
    expect(await endedIds(store)).toEqual(kept.sort());
    expect(await partitions(store)).toEqual(named(DAYS + 1, DAYS));
  });

  it('are days on which runs ended, whenever these were due', async () => {
    const late = await endedRun(store, { endedAt: noonAgo(2), scheduledFor: noonAgo(400) });
    await endedRun(store, { endedAt: noonAgo(OLD), scheduledFor: dayAgo(-300) });
    await dropAll();
    expect(await endedIds(store)).toEqual([late]);
  });

  it('do not include open runs, however long ago these were due', async () => {
    const instance = await createInstance(store);
    const [open] = await instance.accept({ queue: 'q', runAt: noonAgo(400), key: 'k' });
    const [waiting] = await instance.accept({ queue: 'q', runAt: noonAgo(399), dependsOn: [open?.id ?? ''] });
    await dropAll();
    const there = await store.rows<{ id: string }>(sql`SELECT id FROM runs ORDER BY id`);
    expect(there.map(({ id }) => id)).toEqual([open?.id, waiting?.id]);
    expect(await keys()).toEqual(['k']);
    expect(await edges()).toEqual([{ run_id: waiting?.id, depends_on: open?.id }]);
    await instance.stop();
  });

  it('are dropped whatever needs their runs', async () => {
    const instance = await createInstance(store);
    const needed = await endedRun(store, { endedAt: noonAgo(OLD), status: 'failed', trigger: 'api' });
    const [waiting] = await instance.accept({ queue: 'q', dependsOn: [needed], onDependencyFailure: 'run' });
    await dropAll();
    expect(await endedIds(store)).toEqual([]);
    await expect(instance.accept({ queue: 'q', dependsOn: [needed] })).rejects.toThrow(
      `names a run that does not exist: ${needed}`,
    );
    const open = await store.rows<{ id: string }>(sql`SELECT id FROM runs`);
    expect(open.map(({ id }) => id)).toEqual([waiting?.id]);
    await instance.stop();
  });

  it('are dropped at the next look if they get old meanwhile', async () => {
    const dropper = startDropper();
    await dropper.looks();
    await makePartitions(store, [dayAgo(200)]);
    await endedRun(store, { endedAt: noonAgo(200) });
    await dropper.looks();
    await dropper.stop();
    expect(await endedIds(store)).toEqual([]);
    expect(dropper.of('historyDropped').at(-1)?.days).toEqual([dayAgo(200)]);
  });

  it('stay where only one of the clocks says that they are old', async () => {
    const kept = [
      await endedRun(store, { endedAt: noonAgo(OLD) }),
      await endedRun(store, { endedAt: noonAgo(20) }),
    ].sort();
    await makePartitions(store, [dayAgo(20)]);
    const shifted = (days: number) => ({ ...systemClock, now: () => systemClock.now() + days * DAY_MS });
    await dropAll({ clock: shifted(-20) });
    expect(await endedIds(store)).toEqual(kept);
    // A daemon whose clock is far ahead: what is not old by the database's clock stays.
    await dropAll({ clock: shifted(20) });
    expect(await endedIds(store)).toEqual([kept[1]]);
    expect(await partitions(store)).toEqual(named(DAYS + 1, DAYS, 20));
    await dropAll({ clock: shifted(4_000) });
    expect(await endedIds(store)).toEqual([kept[1]]);
  });

  it('stop no other if one of them fails, and nothing else that is to go', async () => {
    const stubborn = await endedRun(store, { endedAt: noonAgo(OLD) });
    await endedRun(store, { endedAt: noonAgo(OLD - 1) });
    await takeKey('k', randomRunId(noonAgo(OLD)));
    await store.rows(sql.raw(`CREATE VIEW in_the_way AS SELECT id FROM ${partitionOf(dayAgo(OLD))}`));
    const dropper = startDropper();
    await dropper.looks();
    expect(await endedIds(store)).toEqual([stubborn]);
    expect(await keys()).toEqual([]);
    expect(dropper.of('historySeen').at(-1)).toMatchObject({ late: 1, oldest: dayAgo(OLD) });
    await until(() => dropper.of('loopFailed').length === 1 || null);
    await store.rows(sql`DROP VIEW in_the_way`);
    await dropper.looks();
    await dropper.stop();
    expect(await endedIds(store)).toEqual([]);
  });

  it('are dropped once by two instances that look at the same moment', async () => {
    for (const day of TO_GO) await endedRun(store, { endedAt: day + NOON });
    const uid = randomUUID();
    for (let n = 0; n < 40; n += 1) await takeKey(`k${n}`, randomRunId(noonAgo(OLD - (n % 5))), uid);
    const both = [startDropper({ batch: 5 }), startDropper({ batch: 5 })];
    await until(async () => {
      await Promise.all(both.map((dropper) => dropper.looks()));
      return (await endedIds(store)).length === 0 || null;
    });
    await Promise.all(both.map((dropper) => dropper.stop()));
    expect(await keys()).toEqual([]);
    const days = both.flatMap((one) => one.of('historyDropped').flatMap((event) => event.days));
    expect(days.sort()).toEqual(TO_GO);
    expect(both.flatMap((one) => one.of('loopFailed'))).toEqual([]);
  });
});

describe('the audit', () => {
  it('is dropped by the day as history is, also rows that never had a partition of their own', async () => {
    const note = (at: number) =>
      store.rows(sql`INSERT INTO audit (at, role, outcome, detail) VALUES (${isoInstant(at)}, 'admin', 'done', '{}')`);
    for (const day of [dayAgo(OLD), dayAgo(DAYS)]) await store.database.run((db) => createPartition(db, day, 'audit'));
    for (const days of [OLD, OLD - 5, DAYS, DAYS - 5]) await note(noonAgo(days));
    expect((await dropAll()).days).toEqual(TO_GO);
    const left = await store.rows(sql`SELECT tableoid::regclass::text AS name FROM audit ORDER BY at`);
    const kept = `audit_${isoInstant(dayAgo(DAYS)).slice(0, 10).replaceAll('-', '')}`;
    expect(left).toEqual([{ name: kept }, { name: 'audit_other' }]);
    const names = (await store.database.run((db) => listPartitions(db, 'audit'))).map(({ day }) => day);
    expect(names).toEqual([DAYS, 0, -1, -2, -3].map(dayAgo));
  });
});

describe('a day on which very much ended', () => {
  it('is dropped unread', async () => {
    await endedRuns(store, { endedAt: noonAgo(OLD) }, 50_000);
    const [partition] = await store.database.run(listPartitions);
    expect(partition?.table).toBe(partitionOf(dayAgo(OLD)));
    const [{ oids } = { oids: '' }] = await store.rows<{
      oids: string;
    }>(sql`SELECT array_agg(oid)::text AS oids FROM (
        SELECT ${partition?.table ?? ''}::regclass::oid AS oid
        UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = ${partition?.table ?? ''}::regclass) AS all_of_it`);
    /** How often this session has read the table or one of its indexes, since it last reported. */
    const reads = sql`SELECT sum(pg_stat_get_xact_numscans(id))::int AS reads FROM unnest(${oids}::oid[]) AS id`;
    const [before, after] = await store.database.transaction(async (tx) => {
      const first = await tx.execute<{ reads: number }>(reads);
      if (partition) await dropPartition(tx, partition);
      return [first[0]?.reads, (await tx.execute<{ reads: number }>(reads))[0]?.reads];
    });
    expect(after).toBeTypeOf('number');
    expect(after).toBe(before);
    expect(await partitions(store)).not.toContain(partition?.table);
    expect(await endedIds(store)).toEqual([]);
  });
});

describe('a day that another transaction uses', () => {
  it('for a moment is dropped at the end of the same round', async () => {
    const [locked, refused] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const holding = store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtext('firelock history ' || current_schema()))`);
      locked.resolve(undefined);
      await refused.promise;
    });
    await locked.promise;
    const database: typeof store.database = {
      ...store.database,
      run: async (work, limitMs) => {
        try {
          return await store.database.run(work, limitMs);
        } catch (error) {
          refused.resolve(undefined);
          await holding;
          throw error;
        }
      },
    };
    const [first, ...others] = TO_GO;
    expect(await dropAll({ database })).toEqual({ days: [...others, first], definitions: 0 });
  });

  it('stays for now, while all others go on; later it is dropped', async () => {
    await endedRun(store, { endedAt: noonAgo(OLD) });
    const dropper = startDropper();
    const instance = await createInstance(store);
    const receiver = await startReceiver();
    await instance.start();
    await whileHistoryIsRead(store, async () => {
      const looking = dropper.looks();
      await instance.accept({ url: receiver.url });
      await until(async () => (await endedIds(store)).length === 2 || null);
      await looking;
      expect(dropper.of('historyDelayed').map(({ day }) => day)).toEqual(TO_GO);
      expect(dropper.of('historyDelayed')[0]).toMatchObject({ work: 'drop', lasts: false });
      expect(dropper.of('historySeen').at(-1)).toMatchObject({ late: TO_GO.length, oldest: dayAgo(OLD) });
      expect(await partitions(store)).toContain(partitionOf(dayAgo(OLD)));
    });
    await dropper.looks();
    await dropper.stop();
    await instance.stop();
    await receiver.close();
    expect(await partitions(store)).toEqual(named(DAYS + 1, DAYS));
    expect(await endedIds(store)).toHaveLength(1);
    expect(dropper.of('historySeen').at(-1)).toMatchObject({ late: 0, oldest: dayAgo(DAYS + 1), days: 6 });
    expect(dropper.of('loopFailed')).toEqual([]);
  });
});

describe('rows that ended on a day that never had a partition', () => {
  it('leave the default one once they are old, few at a time', async () => {
    await endedRuns(store, { endedAt: noonAgo(OLD + 3) }, 7);
    await endedRuns(store, { endedAt: dayAgo(DAYS + 1) - 1 - 100 * DAY_MS }, 1);
    const kept = [
      await endedRun(store, { endedAt: noonAgo(DAYS - 1) }),
      await endedRun(store, { endedAt: noonAgo(2) }),
    ].sort();
    await dropAll({ batch: 3 });
    expect(await endedIds(store)).toEqual(kept);
  });
});

describe('dependencies and keys of dropped runs', () => {
  it('go with what callers called them; a batch goes with the last of its runs', async () => {
    const at = { trigger: 'api', scheduleId: '' };
    const old = () => endedRun(store, { ...at, endedAt: noonAgo(OLD) });
    const young = await endedRun(store, { ...at, endedAt: noonAgo(1), scheduledFor: noonAgo(OLD) });
    const [half, whole] = [randomUUID(), randomUUID()];
    for (const id of [half, whole])
      await store.rows(sql`INSERT INTO batches (id, labels, created_at) VALUES (${id}, '{}', now())`);
    const tag = (runId: string, batchId: string | null) =>
      store.rows(sql`INSERT INTO run_tags (run_id, batch_id, ref, place) VALUES (${runId}, ${batchId}, 'a', 0)`);
    for (const batch of [half, whole, whole, whole, null]) await tag(await old(), batch);
    await tag(young, half);
    await dropAll({ batch: 2 });
    expect(await store.rows(sql`SELECT run_id FROM run_tags`)).toEqual([{ run_id: young }]);
    expect(await store.rows(sql`SELECT id FROM batches`)).toEqual([{ id: half }]);
  });

  it('are swept few at a time, and no others', async () => {
    const at = { endedAt: noonAgo(OLD), trigger: 'api', scheduleId: '' };
    const old = await endedRun(store, at);
    for (let n = 0; n < 7; n += 1) await edge(await endedRun(store, at), old);
    const young = await endedRun(store, { ...at, endedAt: noonAgo(1) });
    const younger = await endedRun(store, { ...at, endedAt: noonAgo(0) });
    await edge(young, old);
    await edge(younger, young);
    const uid = randomUUID();
    await takeKey('a', await endedRun(store, { ...at, trigger: 'manual', scheduleUid: uid, key: 'a' }), uid);
    for (const key of ['b', 'd', 'e', 'f']) await takeKey(key, await endedRun(store, { ...at, key }));
    await takeKey('a', young);
    // It was due long ago, and ended lately.
    await takeKey('c', await endedRun(store, { ...at, endedAt: noonAgo(1), scheduledFor: noonAgo(OLD) }));
    await dropAll({ batch: 2 });
    // What a run depended on is told for as long as the run itself.
    expect(await edges()).toEqual(
      [
        { run_id: young, depends_on: old },
        { run_id: younger, depends_on: young },
      ].sort((one, other) => (one.run_id < other.run_id ? -1 : 1)),
    );
    expect(await keys()).toEqual(['a', 'c']);
  });

  it('are swept too where the run was cancelled long before it was due, and open ones keep theirs', async () => {
    const toCome = noonAgo(-400);
    const cancelled = await endedRun(store, {
      endedAt: noonAgo(OLD),
      trigger: 'api',
      scheduleId: '',
      scheduledFor: toCome,
    });
    await takeKey('cancelled', cancelled);
    await edge(cancelled, randomUUID());
    const instance = await createInstance(store);
    const [first, second] = await instance.accept(
      { queue: 'q', runAt: toCome, key: 'open' },
      { queue: 'q', runAt: toCome },
    );
    await instance.accept({ queue: 'q', runAt: toCome, dependsOn: [first?.id ?? '', second?.id ?? ''] });
    await dropAll({ batch: 2 });
    expect(await keys()).toEqual(['open']);
    expect((await edges()).map(({ depends_on: on }) => on)).toEqual([first?.id, second?.id].sort());
    await instance.stop();
  });

  it('are looked through once a day: what cannot be swept costs no more than that', async () => {
    const statements: string[] = [];
    const { clock, pass } = passingClock();
    const dropper = startDropper({ database: notingAll(store.database, statements), clock });
    const sweeps = () => statements.splice(0).filter((name) => name.startsWith('sweep')).length;
    await dropper.looks();
    expect(sweeps()).toBe(8);
    await dropper.looks();
    expect(sweeps()).toBe(0);
    pass(DAY_MS);
    await dropper.looks();
    expect(sweeps()).toBe(8);
    await dropper.stop();
  });

  it('a key is free again at once, swept or not', async () => {
    const instance = await createInstance(store);
    await instance.put('nightly', { url: 'http://127.0.0.1:1' });
    const used = { key: 'k', queue: 'q', payload: '1' };
    const [first] = await instance.accept(used);
    expect(await instance.accept(used)).toEqual([{ id: first?.id, created: false }]);
    // It ended long ago.
    await store.rows(sql`WITH ended AS (DELETE FROM runs WHERE id = ${first?.id ?? ''} RETURNING *)
      INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
        due_at, attempts, key, created_at, updated_at, finished_at, ended_at)
      SELECT id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, 'succeeded', lane, priority, due_at, 1,
        key, created_at, updated_at, ${isoInstant(noonAgo(OLD))}, ${isoInstant(noonAgo(OLD))} FROM ended`);
    expect(await instance.accept(used)).toEqual([{ id: first?.id, created: false }]);
    const [partition] = await store.database.run(listPartitions);
    await store.database.run(async (db) => partition && dropPartition(db, partition));
    expect(await keys()).toEqual(['k']);
    // With another body as well: it stands for nothing any more.
    const [again] = await instance.accept({ ...used, payload: '2' });
    expect(again).toMatchObject({ created: true });
    expect(again?.id).not.toBe(first?.id);
    await dropAll();
    expect(await keys()).toEqual(['k']);
    expect(await instance.accept({ ...used, payload: '2' })).toEqual([{ id: again?.id, created: false }]);
    await instance.stop();
  });

  it('a key that a call takes while it is swept stands for the run of that call', async () => {
    const instance = await createInstance(store);
    const before = Array.from({ length: 30 }, (_, index) => `k${index}`);
    for (const key of before) await takeKey(key, randomRunId(noonAgo(OLD)));
    const dropper = startDropper({ batch: 3 });
    const looking = dropper.looks();
    const accepted: string[] = [];
    for (const key of before) {
      const [run] = await instance.accept({ key, queue: 'q' });
      expect(run?.created).toBe(true);
      accepted.push(run?.id ?? '');
    }
    await looking;
    await dropper.looks();
    await dropper.stop();
    const held = await store.rows<{ run_id: string }>(sql`SELECT run_id FROM run_keys`);
    expect(held.map(({ run_id }) => run_id).sort()).toEqual(accepted.sort());
    expect(dropper.of('loopFailed')).toEqual([]);
    await instance.stop();
  });
});

describe('definitions', () => {
  async function definition(uid: string, given: { daysAgo: number; id?: string; change?: string; version?: number }) {
    const { daysAgo, id = '', change = 'created', version = 1 } = given;
    await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
      VALUES (${uid}, ${version}, ${id}, ${change}, ${isoInstant(noonAgo(daysAgo))}, '{}')`);
  }
  const definitions = async () =>
    (
      await store.rows<{ uid: string }>(
        sql`SELECT schedule_uid || '/' || version AS uid FROM schedule_versions ORDER BY schedule_uid, version`,
      )
    ).map(({ uid }) => uid);

  it('for one-off runs go once they are old and unused', async () => {
    const [unused, used, open, fresh] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    for (const uid of [unused, used, open]) await definition(uid, { daysAgo: OLD });
    await definition(fresh, { daysAgo: 1 });
    await endedRun(store, { endedAt: noonAgo(3), trigger: 'api', scheduleUid: used });
    const instance = await createInstance(store);
    const [run] = await instance.accept({ queue: 'q' });
    await store.rows(sql`UPDATE runs SET schedule_uid = ${open} WHERE id = ${run?.id ?? ''}`);
    await store.rows(
      sql`DELETE FROM schedule_versions WHERE schedule_uid NOT IN (${unused}, ${used}, ${open}, ${fresh})`,
    );
    expect((await dropAll()).definitions).toBe(1);
    expect(await definitions()).toEqual([`${used}/1`, `${open}/1`, `${fresh}/1`].sort());
    await instance.stop();
  });

  it('go with the last run that used them', async () => {
    const uid = randomUUID();
    await definition(uid, { daysAgo: OLD });
    await endedRun(store, { endedAt: noonAgo(OLD), trigger: 'api', scheduleUid: uid });
    expect((await dropAll()).definitions).toBe(1);
  });

  it('of a deleted schedule go with its runs, the present one of an existing schedule never does', async () => {
    const [deleted, inUse, lately] = [randomUUID(), randomUUID(), randomUUID()];
    for (const uid of [deleted, inUse]) {
      await definition(uid, { daysAgo: OLD + 2, id: 'd' });
      await definition(uid, { daysAgo: OLD, id: 'd', version: 2, change: 'deleted' });
    }
    await endedRun(store, { endedAt: noonAgo(1), scheduledFor: noonAgo(OLD), scheduleUid: inUse });
    await definition(lately, { daysAgo: OLD, id: 'd' });
    await definition(lately, { daysAgo: 1, id: 'd', version: 2, change: 'deleted' });
    const instance = await createInstance(store);
    const there = await instance.put('e', { url: 'http://127.0.0.1:1' });
    await store.rows(sql`UPDATE schedule_versions SET at = ${isoInstant(noonAgo(OLD))} WHERE schedule_id = 'e'`);
    expect((await dropAll({ batch: 1 })).definitions).toBe(2);
    expect(await definitions()).toEqual(
      [`${inUse}/1`, `${inUse}/2`, `${lately}/1`, `${lately}/2`, `${there.uid}/1`].sort(),
    );
    await instance.stop();
  });

  it('that come into use again stay, whichever transaction comes first', async () => {
    const uid = randomUUID();
    await definition(uid, { daysAgo: OLD });
    await store.database.transaction(async (tx) => {
      await tx.execute(sql`UPDATE schedule_versions SET at = clock_timestamp() WHERE schedule_uid = ${uid}`);
      expect((await dropAll()).definitions).toBe(0);
    });
    expect((await dropAll()).definitions).toBe(0);
    expect(await definitions()).toEqual([`${uid}/1`]);
  });
});
