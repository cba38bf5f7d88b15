import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { type RetentionDeps, createRetention } from '../../src/recovery/retention.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { QueryTimeout } from '../../src/store/errors.ts';
import { dropEndedRunsBefore } from '../../src/store/retention.ts';
import { type Store, createStore } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const DAYS = 30;
/** Older than anything is kept. */
const OLD = 40;
const DAY = 86_400_000;
const SIX_HOURS = 6 * 3_600_000;

let store: Store;
beforeEach(async () => {
  store = await createStore();
});
afterEach(async () => {
  await store.drop();
});

interface GivenRun {
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
  const id = randomUUID();
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

/** Of one moment for the whole test, as instants are compared. */
const TODAY = Date.now();
const ago = (days: number) => sql`${new Date(TODAY - days * DAY).toISOString()}::timestamptz`;

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

interface Dropped {
  runs: number;
  definitions: number;
}

interface Retaining {
  told: Dropped[];
  events: FirelockEvent[];
  /** Lets it look again, that much later in its own eyes; resolves once it has looked through all there is. */
  looks(laterMs?: number): Promise<void>;
  stop(): Promise<void>;
}

function startRetention(overrides: Partial<RetentionDeps> = {}): Retaining {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  const told: Dropped[] = [];
  bus.subscribe((event) => {
    events.push(event);
    if (event.type === 'historyDropped') told.push(event);
  });
  let ahead = 0;
  const loop = createRetention({
    database: store.database,
    clock: { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + ahead },
    events: bus,
    retentionDays: DAYS,
    intervalMs: 1_000_000,
    ...overrides,
  });
  return {
    told,
    events,
    looks: async (laterMs = 0) => {
      ahead += laterMs;
      const before = told.length;
      if (loop.passes() === 0) await loop.start();
      else loop.wake();
      await until(() => told.length > before || null);
    },
    stop: async () => {
      await loop.stop();
    },
  };
}

/** From the start until there is nothing left to drop. */
async function dropAll(overrides: Partial<RetentionDeps> = {}): Promise<Dropped> {
  const retention = startRetention(overrides);
  await retention.looks();
  await retention.stop();
  const sum = (of: (one: Dropped) => number) => retention.told.reduce((total, one) => total + of(one), 0);
  return { runs: sum((one) => one.runs), definitions: sum((one) => one.definitions) };
}

describe('runs that are older than history is kept', () => {
  it('go, with their attempts; what is younger stays', async () => {
    await run({ daysAgo: OLD });
    await run({ daysAgo: OLD, status: 'failed' });
    await run({ daysAgo: OLD, status: 'skipped' });
    const kept = [await run({ daysAgo: 29 }), await run({ daysAgo: 0 })].sort();
    expect(await dropAll()).toEqual({ runs: 3, definitions: 0 });
    expect([await ids(), await ids('attempts')]).toEqual([kept, kept]);
  });

  it('stay for a day longer than planning reaches back, so that none of them is planned again', async () => {
    const kept = await run({ daysAgo: DAYS + 0.9 });
    await run({ daysAgo: DAYS + 1.1 });
    await dropAll();
    expect(await ids()).toEqual([kept]);
  });

  it('stay while they are open, and for as long after their end', async () => {
    const kept = [
      await run({ daysAgo: OLD, endedDaysAgo: null }),
      await run({ daysAgo: OLD, endedDaysAgo: null, status: 'waiting' }),
      await run({ daysAgo: OLD, endedDaysAgo: null, status: 'running' }),
      await run({ daysAgo: OLD, endedDaysAgo: 2 }),
    ].sort();
    expect(await dropAll()).toEqual({ runs: 0, definitions: 0 });
    expect(await ids()).toEqual(kept);
  });

  it('stay while a run that depends on them, or follows them, is open', async () => {
    const needed = await run({ daysAgo: OLD });
    const done = await run({ daysAgo: OLD });
    const parent = await run({ daysAgo: OLD, endedDaysAgo: OLD - 1 });
    const dependent = await run({
      daysAgo: OLD - 2,
      endedDaysAgo: null,
      status: 'waiting',
      dependsOn: [needed],
    });
    const follower = await run({ daysAgo: OLD - 1, endedDaysAgo: null, trigger: 'after', parent });
    await run({ daysAgo: OLD - 1, dependsOn: [done] });
    await dropAll();
    expect(await ids()).toEqual([needed, parent, dependent, follower].sort());
    expect(await edges()).toEqual([{ run_id: dependent, depends_on: needed }]);
    await store.rows(sql`UPDATE runs SET status = 'succeeded', finished_at = ${ago(OLD)}`);
    await dropAll();
    expect([await ids(), await edges()]).toEqual([[], []]);
  });

  it('take their edges with them, also where the other end stays', async () => {
    const old = await run({ daysAgo: OLD });
    const young = await run({ daysAgo: 1, dependsOn: [old] });
    const younger = await run({ daysAgo: 0, dependsOn: [young] });
    await dropAll();
    expect(await edges()).toEqual([{ run_id: younger, depends_on: young }]);
  });

  it('take their keys with them, and no other run’s', async () => {
    const uid = randomUUID();
    const oneOff = '00000000-0000-0000-0000-000000000000';
    const key = (scope: string, name: string, runId: string) =>
      store.rows(
        sql`INSERT INTO run_keys (scope, key, body_hash, run_id) VALUES (${scope}, ${name}, '', ${runId})`,
      );
    await key(uid, 'a', await run({ daysAgo: OLD, trigger: 'manual', scheduleUid: uid, key: 'a' }));
    await key(oneOff, 'b', await run({ daysAgo: OLD, trigger: 'api', key: 'b' }));
    await key(oneOff, 'a', await run({ daysAgo: 1, trigger: 'api', key: 'a' }));
    // Taken anew by another run than the old one.
    await run({ daysAgo: OLD, trigger: 'api', key: 'c' });
    await key(oneOff, 'c', await run({ daysAgo: 1, trigger: 'api', key: 'c' }));
    await dropAll();
    expect(await keys()).toEqual(['a', 'c']);
  });

  it('go page by page, all of them, although some stay', async () => {
    const kept: string[] = [];
    for (let n = 0; n < 23; n += 1) {
      await run({ daysAgo: OLD + n / 10 });
      if (n % 4 === 0) kept.push(await run({ daysAgo: OLD + n / 10, endedDaysAgo: null }));
    }
    expect((await dropAll({ batch: 3 })).runs).toBe(23);
    expect(await ids()).toEqual(kept.sort());
  });

  it('that were open are not read again with every look, but once in a while', async () => {
    const open = await run({ daysAgo: OLD, endedDaysAgo: null });
    const retention = startRetention();
    await retention.looks();
    await store.rows(sql`UPDATE runs SET status = 'succeeded', finished_at = ${ago(OLD)}`);
    await retention.looks();
    expect(await ids()).toEqual([open]);
    await retention.looks(SIX_HOURS);
    expect(await ids()).toEqual([]);
    await retention.stop();
  });

  it('that get old meanwhile go with the next look', async () => {
    await run({ daysAgo: OLD });
    const retention = startRetention();
    await retention.looks();
    await run({ daysAgo: OLD - 5 });
    await retention.looks();
    expect(await ids()).toEqual([]);
    await retention.stop();
  });

  it('stay where only one of the clocks says that they are old', async () => {
    const kept = await run({ daysAgo: OLD });
    const now = () => systemClock.now() - 20 * DAY;
    await dropAll({ clock: { ...systemClock, now } });
    expect(await ids()).toEqual([kept]);
  });

  it('that are too much for one statement go in smaller pieces; one that cannot go holds up no other', async () => {
    for (let n = 0; n < 12; n += 1) await run({ daysAgo: OLD + n });
    const stubborn = await run({ daysAgo: OLD + 5.5 });
    const { database } = store;
    const sizes: number[] = [];
    const retention = startRetention({
      batch: 8,
      database: {
        ...database,
        transaction: (work, limitMs) =>
          database.transaction(async (tx) => {
            const [before] = await tx.execute<{ count: number }>(
              sql`SELECT count(*)::int AS count FROM runs`,
            );
            const result = await work(tx);
            const [after] = await tx.execute<{ count: number; there: boolean }>(
              sql`SELECT count(*)::int AS count, count(*) FILTER (WHERE id = ${stubborn}) > 0 AS there FROM runs`,
            );
            sizes.push((before?.count ?? 0) - (after?.count ?? 0));
            if (sizes.at(-1) === 8 || after?.there === false) throw new QueryTimeout(1);
            return result;
          }, limitMs),
      },
    });
    await retention.looks();
    await retention.stop();
    expect(await ids()).toEqual([stubborn]);
    expect(sizes.filter((size) => size === 8).length).toBeGreaterThan(0);
    expect(retention.events.some(({ type }) => type === 'loopFailed')).toBe(true);
  });
});

describe('a run that is being made to depend on an old one', () => {
  const drop = async () =>
    await store.database.transaction(async (tx) => {
      const [old] = await store.rows<{ id: string; at: string }>(
        sql`SELECT id, scheduled_for AS at FROM runs ORDER BY scheduled_for LIMIT 1`,
      );
      if (!old) throw new Error('there is no run');
      const page = [{ id: old.id, scheduledFor: Date.parse(old.at) }];
      return await dropEndedRunsBefore(tx, Date.now() - DAYS * DAY, page);
    });

  it('keeps it: who makes it so holds its lock, and is seen afterwards', async () => {
    const old = await run({ daysAgo: OLD });
    await store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT FROM runs WHERE id = ${old} FOR SHARE`);
      expect(await drop()).toBe(0);
      const id = randomUUID();
      await tx.execute(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane,
          priority, due_at, attempts, created_at, updated_at)
        SELECT ${id}, ${ago(0)}, schedule_uid, 1, '', 'api', 'pending', lane, 1, ${ago(0)}, 0, ${ago(0)}, ${ago(0)} FROM runs`);
      await tx.execute(sql`INSERT INTO run_dependencies (run_id, scheduled_for, depends_on, depends_on_scheduled_for, position, counted_at)
        VALUES (${id}, ${ago(0)}, ${old}, ${ago(OLD)}, 0, ${ago(0)})`);
    });
    expect(await drop()).toBe(0);
    expect(await ids()).toContain(old);
  });

  it('finds none where it was dropped first', async () => {
    const old = await run({ daysAgo: OLD });
    expect(await drop()).toBe(1);
    expect(await store.rows(sql`SELECT FROM runs WHERE id = ${old} FOR SHARE`)).toEqual([]);
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
