import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { randomRunId, scheduledForOf } from '../../src/core/run.ts';
import { dropDay } from '../../src/recovery/drop-day.ts';
import { type RetentionDeps, createRetention } from '../../src/recovery/retention.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { DAY_MS, dayOf } from '../../src/core/history-day.ts';
import { droppedBefore, listHistory } from '../../src/store/history-days.ts';
import { makeHistory, partitions } from '../support/history.ts';
import { type Store, createInstance, createStore } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const DAYS = 30;
/** Older than anything is kept. */
const OLD = 40;

let store: Store;
beforeEach(async () => {
  store = await createStore();
  await makeHistory(store, { from: OLD, to: DAYS });
});
afterEach(async () => {
  await store.drop();
});

interface GivenRun {
  /** At noon of the day so long ago. */
  daysAgo: number;
  /** Null: it has not ended. */
  endedDaysAgo?: number | null;
  status?: string;
  trigger?: string;
  scheduleUid?: string;
  key?: string;
  parent?: string;
  dependsOn?: string[];
}

/** A run as it stands long after; answers its id. */
async function run(given: GivenRun): Promise<string> {
  const { daysAgo, endedDaysAgo = daysAgo, trigger = 'schedule', scheduleUid = randomUUID() } = given;
  const { status = endedDaysAgo === null ? 'pending' : 'succeeded', key = null, parent = null } = given;
  const id = randomRunId(NOON - daysAgo * DAY_MS);
  const at = ago(daysAgo);
  const ended = endedDaysAgo === null ? sql`NULL::timestamptz` : ago(endedDaysAgo);
  await store.rows(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
      priority, due_at, attempts, key, parent_run_id, finished_at, created_at, updated_at)
    VALUES (${id}, ${at}, ${scheduleUid}, 1, 's', ${trigger}, ${status}, 'http http://127.0.0.1', 1, ${at}, 1, ${key}, ${parent},
      ${ended}, ${at}, ${at})`);
  await store.rows(sql`INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, recovery)
    VALUES (${id}, ${at}, 1, ${randomUUID()}, ${at}, ${at}, 'transient', false)`);
  for (const other of given.dependsOn ?? [])
    await store.rows(sql`INSERT INTO run_dependencies (run_id, scheduled_for, depends_on, depends_on_scheduled_for, position)
      SELECT ${id}, ${at}, id, scheduled_for, 0 FROM runs WHERE id = ${other}`);
  return id;
}

const NOON = dayOf(Date.now()) + DAY_MS / 2;
const ago = (days: number) => sql`${new Date(NOON - days * DAY_MS).toISOString()}::timestamptz`;
const nameOf = (daysAgo: number) =>
  `runs_${new Date(NOON - daysAgo * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
const isThere = async (daysAgo: number) => (await partitions(store)).includes(nameOf(daysAgo));
const end = (id: string, daysAgo: number) =>
  store.rows(sql`UPDATE runs SET status = 'succeeded', finished_at = ${ago(daysAgo)} WHERE id = ${id}`);

async function definition(
  uid: string,
  given: { daysAgo: number; id?: string; change?: string; version?: number },
) {
  const { daysAgo, id = '', change = 'created', version = 1 } = given;
  await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    VALUES (${uid}, ${version}, ${id}, ${change}, ${ago(daysAgo)}, '{}')`);
}

async function schedule(uid: string, id: string) {
  await store.rows(sql`INSERT INTO schedules (uid, id, version, enabled, cron, lane, priority, created_at, updated_at)
    VALUES (${uid}, ${id}, 1, false, '* * * * *', 'http http://127.0.0.1', 1, ${ago(OLD)}, ${ago(OLD)})`);
}

const ids = async (table: 'runs' | 'attempts' = 'runs') =>
  (
    await store.rows<{ id: string }>(
      table === 'runs' ? sql`SELECT id FROM runs` : sql`SELECT run_id AS id FROM attempts`,
    )
  )
    .map(({ id }) => id)
    .sort();
const keys = async () =>
  (await store.rows<{ key: string }>(sql`SELECT key FROM run_keys ORDER BY key, scope`)).map(
    ({ key }) => key,
  );
const edges = () =>
  store.rows<{ run_id: string; depends_on: string }>(sql`SELECT run_id, depends_on FROM run_dependencies`);
const definitions = async () =>
  (
    await store.rows<{ uid: string }>(
      sql`SELECT schedule_uid || '/' || version AS uid FROM schedule_versions ORDER BY schedule_uid, version`,
    )
  ).map(({ uid }) => uid);

interface Retaining {
  events: FirelockEvent[];
  of<T extends FirelockEvent['type']>(type: T): Extract<FirelockEvent, { type: T }>[];
  /** Lets it look again, that much later in its own eyes; resolves once it has looked through all there is. */
  looks(laterMs?: number): Promise<void>;
  stop(): Promise<void>;
}

function startRetention(overrides: Partial<RetentionDeps> = {}): Retaining {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  let ahead = 0;
  const loop = createRetention({
    database: store.database,
    schemaDatabase: store.database,
    clock: { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + ahead },
    events: bus,
    retentionDays: DAYS,
    intervalMs: 1_000_000,
    ...overrides,
  });
  const of = <T extends FirelockEvent['type']>(type: T) =>
    events.filter((event): event is Extract<FirelockEvent, { type: T }> => event.type === type);
  return {
    events,
    of,
    looks: async (laterMs = 0) => {
      ahead += laterMs;
      const before = of('historySeen').length;
      if (loop.passes() === 0) await loop.start();
      else loop.wake();
      await until(() => of('historySeen').length > before || null);
    },
    stop: async () => {
      await loop.stop();
    },
  };
}

/** From the start until there is nothing left to drop: how many runs went, and definitions. */
async function dropAll(overrides: Partial<RetentionDeps> = {}) {
  const retention = startRetention(overrides);
  await retention.looks();
  await retention.stop();
  const told = retention.of('historyDropped');
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
  return {
    runs: sum(told.flatMap(({ days }) => days.map(({ runs }) => runs))),
    definitions: sum(told.map(({ definitions }) => definitions)),
  };
}

/** A transaction that has read runs, and stays open meanwhile. */
async function whileRunsAreRead<T>(work: () => Promise<T>): Promise<T> {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let isReading = false;
  const reading = store.database.transaction(async (tx) => {
    await tx.execute(sql`SELECT count(*) FROM runs`);
    isReading = true;
    await released;
  });
  await until(() => isReading || null);
  try {
    return await work();
  } finally {
    release();
    await reading;
  }
}

describe('days that are older than history is kept', () => {
  it('go whole, with the attempts; what is younger stays', async () => {
    await run({ daysAgo: OLD + 100 });
    await run({ daysAgo: OLD });
    await run({ daysAgo: OLD - 1, status: 'failed' });
    await run({ daysAgo: OLD - 1, status: 'skipped' });
    const kept = [await run({ daysAgo: 29 }), await run({ daysAgo: 0 })].sort();
    expect(await dropAll()).toEqual({ runs: 4, definitions: 0 });
    expect([await ids(), await ids('attempts')]).toEqual([kept, kept]);
    expect(await partitions(store)).toEqual([nameOf(31), nameOf(30)]);
    const before = await store.database.run(droppedBefore);
    expect(before).toBe(dayOf(NOON) - (DAYS + 1) * DAY_MS);
  });

  it('stay for a day longer than planning reaches back, so that none of their fires is planned again', async () => {
    const kept = await run({ daysAgo: DAYS + 1 });
    await run({ daysAgo: DAYS + 2 });
    await dropAll();
    expect(await ids()).toEqual([kept]);
  });

  it('stay while runs of them are open, which is told once, and stay for as long after the last end', async () => {
    const open = await run({ daysAgo: OLD, endedDaysAgo: null, status: 'waiting' });
    const running = await run({ daysAgo: OLD, endedDaysAgo: null, status: 'running' });
    const late = await run({ daysAgo: OLD - 1, endedDaysAgo: 2 });
    await run({ daysAgo: OLD - 2 });
    const retention = startRetention();
    await retention.looks();
    expect(await ids()).toEqual([open, running, late].sort());
    expect(retention.of('dayKept')).toEqual([
      {
        type: 'dayKept',
        day: dayOf(NOON) - (OLD - 1) * DAY_MS,
        because: 'open',
        count: 2,
        runs: [open, running].sort().map((runId) => ({ runId, scheduleId: 's' })),
      },
      expect.objectContaining({ because: 'endedLate', count: 0, runs: [] }),
    ]);
    expect(retention.of('historySeen').at(-1)).toEqual({
      type: 'historySeen',
      days: 4,
      oldest: dayOf(NOON) - OLD * DAY_MS,
      kept: { open: 1, needed: 0, endedLate: 1, locked: 0 },
    });
    await retention.looks();
    expect(retention.of('dayKept')).toHaveLength(2);
    await end(open, OLD);
    await end(running, 5);
    await retention.looks();
    expect(retention.of('dayKept').slice(2)).toEqual([expect.objectContaining({ because: 'endedLate' })]);
    expect(await ids()).toEqual([open, running, late].sort());
    await retention.stop();
    await end(running, OLD);
    await dropAll();
    expect(await ids()).toEqual([late]);
  });

  it('stay while a run that depends on one of them, or follows it, is open', async () => {
    const needed = await run({ daysAgo: OLD });
    const parent = await run({ daysAgo: OLD - 1, endedDaysAgo: OLD - 2 });
    const done = await run({ daysAgo: OLD - 3 });
    const dependent = await run({ daysAgo: 1, endedDaysAgo: null, status: 'waiting', dependsOn: [needed] });
    const follower = await run({ daysAgo: OLD - 2, endedDaysAgo: null, trigger: 'after', parent });
    await run({ daysAgo: OLD - 4, dependsOn: [done] });
    const retention = startRetention();
    await retention.looks();
    expect(await ids()).toEqual([needed, parent, dependent, follower].sort());
    expect(await edges()).toEqual([{ run_id: dependent, depends_on: needed }]);
    expect(retention.of('dayKept').map(({ because, runs }) => [because, runs[0]?.runId])).toEqual([
      ['needed', dependent],
      ['needed', follower],
      ['open', follower],
    ]);
    await store.rows(
      sql`UPDATE runs SET status = 'succeeded', finished_at = ${ago(OLD)} WHERE finished_at IS NULL`,
    );
    await retention.looks();
    await retention.stop();
    expect([await ids(), await edges()]).toEqual([[dependent], []]);
  });

  it('take their edges and keys with them, and nobody else’s, few at a time', async () => {
    const uid = randomUUID();
    const oneOff = '00000000-0000-0000-0000-000000000000';
    const key = (scope: string, name: string, runId: string) =>
      store.rows(
        sql`INSERT INTO run_keys (scope, key, body_hash, run_id) VALUES (${scope}, ${name}, '', ${runId})`,
      );
    const old = await run({ daysAgo: OLD });
    for (let n = 0; n < 7; n += 1) await run({ daysAgo: OLD, dependsOn: [old] });
    const young = await run({ daysAgo: 1, dependsOn: [old] });
    const younger = await run({ daysAgo: 0, dependsOn: [young] });
    await key(uid, 'a', await run({ daysAgo: OLD, trigger: 'manual', scheduleUid: uid, key: 'a' }));
    for (const name of ['b', 'd', 'e', 'f'])
      await key(oneOff, name, await run({ daysAgo: OLD, trigger: 'api', key: name }));
    await key(oneOff, 'a', await run({ daysAgo: 1, trigger: 'api', key: 'a' }));
    // Taken anew by another run than the old one.
    await run({ daysAgo: OLD, trigger: 'api', key: 'c' });
    await key(oneOff, 'c', await run({ daysAgo: 1, trigger: 'api', key: 'c' }));
    expect((await dropAll({ batch: 2 })).runs).toBe(14);
    expect(await edges()).toEqual([{ run_id: younger, depends_on: young }]);
    expect(await keys()).toEqual(['a', 'c']);
  });

  it('of which rows stand in the default partition go from there, few at a time, with all that belongs to them', async () => {
    await store.rows(sql.raw(`DROP TABLE ${nameOf(36)}, ${nameOf(36).replace('runs', 'attempts')}`));
    for (let n = 0; n < 7; n += 1) await run({ daysAgo: 36 });
    const needed = await run({ daysAgo: 36 });
    await run({ daysAgo: 35, dependsOn: [needed] });
    const young = await run({ daysAgo: 2 });
    const open = await run({ daysAgo: 36, endedDaysAgo: null });
    const retention = startRetention({ batch: 3 });
    await retention.looks();
    expect(await ids()).toHaveLength(10);
    expect(retention.of('dayKept')).toEqual([expect.objectContaining({ because: 'open', count: 1 })]);
    await end(open, 36);
    await retention.looks();
    await retention.stop();
    expect(retention.of('historyDropped').at(-1)?.days).toEqual([
      { day: dayOf(NOON) - 35 * DAY_MS, runs: 9 },
    ]);
    expect([await ids(), await ids('attempts'), await edges()]).toEqual([[young], [young], []]);
    expect(retention.of('historySeen').at(-1)?.kept).toEqual({ open: 0, needed: 0, endedLate: 0, locked: 0 });
  });

  it('that get old meanwhile go with the next look', async () => {
    await run({ daysAgo: OLD });
    const retention = startRetention();
    await retention.looks();
    const late = await run({ daysAgo: DAYS, endedDaysAgo: null });
    await run({ daysAgo: 200 });
    await retention.looks();
    expect(await ids()).toEqual([late]);
    await retention.stop();
  });

  it('stay where only one of the clocks says that they are old', async () => {
    const kept = await run({ daysAgo: OLD });
    const now = () => systemClock.now() - 20 * DAY_MS;
    await dropAll({ clock: { ...systemClock, now } });
    expect(await ids()).toEqual([kept]);
  });

  it('one that fails holds up no other one', async () => {
    const stubborn = await run({ daysAgo: OLD });
    await run({ daysAgo: OLD - 1 });
    await store.rows(sql.raw(`CREATE VIEW in_the_way AS SELECT id FROM ${nameOf(OLD)}`));
    const retention = startRetention();
    await retention.looks();
    expect(await ids()).toEqual([stubborn]);
    expect(retention.of('loopFailed')).toHaveLength(1);
    await store.rows(sql`DROP VIEW in_the_way`);
    await retention.looks(1_000_000);
    await retention.stop();
    expect(await ids()).toEqual([]);
  });

  it('are dropped once by two instances that look at the same moment', async () => {
    for (let n = 0; n < 5; n += 1) await run({ daysAgo: OLD - n });
    const uid = randomUUID();
    for (let n = 0; n < 40; n += 1)
      await store.rows(sql`INSERT INTO run_keys (scope, key, body_hash, run_id)
        VALUES (${uid}, ${`k${n}`}, '', ${randomRunId(NOON - (OLD - (n % 5)) * DAY_MS)})`);
    const both = [startRetention({ batch: 5 }), startRetention({ batch: 5 })];
    await Promise.all(both.map((retention) => retention.looks()));
    await Promise.all(both.map((retention) => retention.stop()));
    expect([await ids(), await keys()]).toEqual([[], []]);
    const days = both.flatMap((one) => one.of('historyDropped').flatMap((told) => told.days));
    expect(days.reduce((sum, { runs }) => sum + runs, 0)).toBe(5);
    expect(new Set(days.map(({ day }) => day)).size).toBe(days.length);
    expect(both.flatMap((one) => one.of('loopFailed'))).toEqual([]);
  });
});

describe('a day that somebody reads', () => {
  it('stays for now, and nobody else waits for it; later it goes', async () => {
    await run({ daysAgo: OLD });
    const retention = startRetention();
    const instance = await createInstance(store);
    await whileRunsAreRead(async () => {
      const looking = retention.looks();
      await until(() => retention.of('historyDelayed').length > 0 || null);
      await instance.accept({ url: 'http://127.0.0.1:1' });
      expect(await ids()).toHaveLength(2);
      expect(await isThere(OLD)).toBe(true);
      void looking;
    });
    await until(async () => !(await isThere(OLD)) || null);
    await retention.stop();
    await instance.stop();
    expect(retention.of('loopFailed')).toEqual([]);
    expect(retention.of('historyDelayed')[0]).toMatchObject({ work: 'drop', lasts: false });
  });
});

describe('a run that is being made to depend on one of an old day', () => {
  it('keeps its edge, where that one was opened again after the day was looked at; so does the key', async () => {
    const id = await run({ daysAgo: OLD, status: 'failed', key: 'k' });
    await store.rows(
      sql`INSERT INTO run_keys (scope, key, body_hash, run_id) VALUES (${randomUUID()}, 'k', '', ${id})`,
    );
    const { days, other } = await store.database.run(listHistory);
    const day = days.find(({ from, to }) => (from ?? 0) <= scheduledForOf(id) && scheduledForOf(id) < to);
    if (!day) throw new Error('there is no such day');
    const deps = {
      database: store.database,
      schemaDatabase: store.database,
      events: createEventBus(),
      batch: 10,
    };
    const steps = dropDay(deps, { days, other }, day, NOON - (DAYS + 1) * DAY_MS);
    await steps.next();
    await store.rows(sql`UPDATE runs SET status = 'pending', finished_at = NULL WHERE id = ${id}`);
    const dependent = await run({ daysAgo: 0, endedDaysAgo: null, status: 'waiting', dependsOn: [id] });
    let fate = await steps.next();
    while (fate.done !== true) fate = await steps.next();
    expect(fate.value).toMatchObject({ kind: 'kept', because: 'open' });
    expect(await edges()).toEqual([{ run_id: dependent, depends_on: id }]);
    expect(await keys()).toEqual(['k']);
  });

  it('keeps it where it comes first, and finds none where the day went first', async () => {
    const old = await run({ daysAgo: OLD });
    const instance = await createInstance(store);
    const [young] = await instance.accept({ url: 'http://127.0.0.1:1', dependsOn: [old] });
    await store.rows(sql`UPDATE runs SET status = 'pending' WHERE id = ${young?.id ?? ''}`);
    const retention = startRetention();
    await retention.looks();
    expect(retention.of('dayKept')).toEqual([expect.objectContaining({ because: 'needed', count: 1 })]);
    await end(young?.id ?? '', 0);
    await retention.looks();
    await retention.stop();
    expect(await ids()).toEqual([young?.id]);
    await expect(instance.accept({ url: 'http://127.0.0.1:1', dependsOn: [old] })).rejects.toThrow(
      `there is no run ${old}`,
    );
    await instance.stop();
  });
});

describe('definitions', () => {
  it('of one-off runs go once they are old and unused', async () => {
    const [unused, used, fresh] = [randomUUID(), randomUUID(), randomUUID()];
    await definition(unused, { daysAgo: OLD });
    await definition(used, { daysAgo: OLD });
    await definition(fresh, { daysAgo: 1 });
    await run({ daysAgo: 3, trigger: 'api', scheduleUid: used });
    expect((await dropAll()).definitions).toBe(1);
    expect(await definitions()).toEqual([`${used}/1`, `${fresh}/1`].sort());
  });

  it('go with the last run that used them', async () => {
    const uid = randomUUID();
    await definition(uid, { daysAgo: OLD });
    await run({ daysAgo: OLD, trigger: 'api', scheduleUid: uid });
    expect(await dropAll()).toEqual({ runs: 1, definitions: 1 });
  });

  it('of a deleted schedule go with its runs, those of a schedule that is there never do', async () => {
    const [deleted, inUse, lately, there] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    for (const uid of [deleted, inUse]) {
      await definition(uid, { daysAgo: OLD + 2, id: 'd' });
      await definition(uid, { daysAgo: OLD, id: 'd', version: 2, change: 'deleted' });
    }
    await run({ daysAgo: OLD, scheduleUid: inUse, endedDaysAgo: 1 });
    await definition(lately, { daysAgo: OLD, id: 'd' });
    await definition(lately, { daysAgo: 1, id: 'd', version: 2, change: 'deleted' });
    await schedule(there, 'e');
    await definition(there, { daysAgo: OLD, id: 'e' });
    expect((await dropAll({ batch: 1 })).definitions).toBe(2);
    expect(await definitions()).toEqual(
      [`${inUse}/1`, `${inUse}/2`, `${lately}/1`, `${lately}/2`, `${there}/1`].sort(),
    );
  });

  it('that are being used again stay, whoever comes first', async () => {
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
