import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { randomRunId } from '../../src/core/run.ts';
import { createDaysAhead } from '../../src/recovery/days-ahead.ts';
import { createRetention } from '../../src/recovery/retention.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { DAY_MS, dayOf } from '../../src/core/history-day.ts';
import { isNotNow } from '../../src/store/errors.ts';
import { listHistory, makeDay } from '../../src/store/history-days.ts';
import { endFirstPartitionBefore, makeHistory, partitions, tableOf } from '../support/history.ts';
import { type Store, createInstance, createStore } from '../support/pipeline.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const TODAY = dayOf(Date.now());
const day = (ahead: number) => TODAY + ahead * DAY_MS;
const nameOf = (ahead: number, table = 'runs') =>
  `${table}_${new Date(day(ahead)).toISOString().slice(0, 10).replaceAll('-', '')}`;
const COMING = [1, 2, 3].map((ahead) => nameOf(ahead));

let store: Store;
beforeEach(async () => {
  store = await createStore();
});
afterEach(async () => {
  await store.drop();
});

/** One-off runs of that day, which nobody acts on; the first of their ids. */
async function runsAt(at: number, count = 1): Promise<string> {
  const [first] = await store.rows<{
    id: string;
  }>(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id,
      trigger, status, lane, priority, due_at, attempts, key, own_payload, created_at, updated_at)
    SELECT overlay(gen_random_uuid()::text PLACING ${randomRunId(at).slice(0, 14)} FROM 1 FOR 14)::uuid, ${new Date(at).toISOString()}::timestamptz,
      gen_random_uuid(), 1, '', 'api', 'pending', 'http http://127.0.0.1', 1, ${new Date(at).toISOString()}::timestamptz, 2,
      'key ' || n, '{"n":1.0}', clock_timestamp(), clock_timestamp()
    FROM generate_series(1, ${count}::int) AS n RETURNING id`);
  return first?.id ?? '';
}

/** Runs of the day were there before it. */
function orNotNow(error: unknown): void {
  if (!isNotNow(error)) throw error;
}

function startDays(overrides: { clock?: typeof systemClock } = {}) {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const loop = createDaysAhead({
    database: store.database,
    schemaDatabase: store.database,
    clock: overrides.clock ?? systemClock,
    events: bus,
  });
  const of = <T extends FirelockEvent['type']>(type: T) =>
    events.filter((event): event is Extract<FirelockEvent, { type: T }> => event.type === type);
  return {
    loop,
    of,
    stop: async () => {
      await loop.stop();
    },
    passes: async () => {
      const before = of('daysMade').length;
      if (loop.passes() === 0) await loop.start();
      else loop.wake();
      await until(() => of('daysMade').length > before || null);
    },
  };
}

async function pass(): Promise<ReturnType<typeof startDays>> {
  const days = startDays();
  await days.passes();
  await days.stop();
  return days;
}

describe('the coming days', () => {
  it('are given tables of their own, with all indexes and settings that others have, once', async () => {
    expect(await partitions(store)).toEqual(['runs_before_days']);
    const days = await pass();
    expect(days.of('daysMade')).toEqual([{ type: 'daysMade', days: [day(1), day(2), day(3)], ahead: 3 }]);
    expect(await partitions(store)).toEqual(['runs_before_days', ...COMING]);
    const indexes = (table: string) =>
      store.rows(sql`SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', '') AS definition, indisunique, indisprimary
        FROM pg_index WHERE indrelid = ${table}::regclass ORDER BY 1, 2`);
    for (const table of ['runs', 'attempts']) {
      expect(await indexes(nameOf(1, table))).toEqual(await indexes(table));
      expect(await indexes(`${table}_other`)).toEqual(await indexes(table));
    }
    const settings = await store.rows(sql`SELECT DISTINCT reloptions::text FROM pg_class
      WHERE relname IN (${nameOf(1)}, 'runs_other', 'runs_before_days')`);
    expect(settings).toHaveLength(1);
    expect((await pass()).of('daysMade')).toEqual([{ type: 'daysMade', days: [], ahead: 3 }]);
  });

  it('have today among them where nothing of it is in the default partition', async () => {
    await endFirstPartitionBefore(store, TODAY);
    await pass();
    expect(await partitions(store)).toEqual(['runs_before_days', nameOf(0), ...COMING]);
  });

  it('leave alone what has begun without tables of its own', async () => {
    await endFirstPartitionBefore(store, TODAY);
    const begun = await runsAt(TODAY);
    await pass();
    expect(await partitions(store)).toEqual(['runs_before_days', ...COMING]);
    expect(await tableOf(store, begun)).toBe('runs_other');
  });

  it('take along what stands in the default partition, as it is, and nothing else', async () => {
    const ids = [
      await runsAt(day(2) - 1),
      await runsAt(day(2)),
      await runsAt(day(3) - 1),
      await runsAt(day(9)),
    ];
    await store.rows(sql`INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, recovery)
      SELECT id, scheduled_for, 1, gen_random_uuid(), created_at, created_at, 'transient', false FROM runs`);
    const rows = () => store.rows(sql`SELECT * FROM runs ORDER BY id`);
    const attempts = () => store.rows(sql`SELECT * FROM attempts ORDER BY run_id`);
    const before = [await rows(), await attempts()];
    await pass();
    expect([await rows(), await attempts()]).toEqual(before);
    const tables = await Promise.all(ids.map((id) => tableOf(store, id)));
    expect(tables).toEqual([nameOf(1), nameOf(2), nameOf(2), 'runs_other']);
    expect(
      await store.rows(sql`SELECT tableoid::regclass::text AS name FROM attempts ORDER BY name`),
    ).toEqual(
      [nameOf(1, 'attempts'), nameOf(2, 'attempts'), nameOf(2, 'attempts'), 'attempts_other'].map((name) => ({
        name,
      })),
    );
  });

  it('have one far ahead among them for which much is planned, but not more than can be moved at once', async () => {
    await runsAt(day(9), 1_000);
    await runsAt(day(10), 999);
    await runsAt(day(2), 10_001);
    const days = startDays();
    await days.passes();
    await days.passes();
    await days.stop();
    expect(await partitions(store)).toEqual(['runs_before_days', nameOf(1), nameOf(3), nameOf(9)]);
    expect(days.of('dayNotMade')).toEqual([{ type: 'dayNotMade', day: day(2), runs: 10_001 }]);
    expect(days.of('daysMade').map(({ ahead }) => ahead)).toEqual([1, 1]);
    expect(await store.rows(sql`SELECT count(*)::int AS count FROM runs`)).toEqual([{ count: 12_000 }]);
  });

  it('are made beside runs that are recorded for them, each of which is there afterwards', async () => {
    const instance = await createInstance(store);
    const accept = (ahead: number, n: number) =>
      instance.accept({ queue: 'q', runAt: day(ahead) + n }).then(([one]) => one?.id ?? '');
    const recorded: string[] = [];
    for (let ahead = 2; ahead < 8; ahead += 1) {
      const history = await store.database.run(listHistory);
      const [, ...ids] = await Promise.all([
        store.database.run((db) => makeDay(db, history, day(ahead), false)).catch(orNotNow),
        ...[1, 2, 3, 4].map((n) => accept(ahead, n)),
      ]);
      recorded.push(...ids);
    }
    const there = await store.rows<{ id: string }>(sql`SELECT id FROM runs`);
    expect(there.map(({ id }) => id).sort()).toEqual(recorded.sort());
    await instance.stop();
  });

  it('are made by one of several instances that look at the same moment', async () => {
    await runsAt(day(1), 20);
    const all = [startDays(), startDays(), startDays()];
    await Promise.all(all.map((days) => days.passes()));
    await Promise.all(all.map((days) => days.stop()));
    expect(await partitions(store)).toEqual(['runs_before_days', ...COMING]);
    expect(all.flatMap((days) => days.of('loopFailed'))).toEqual([]);
  });

  it('wait for whoever reads runs in a long transaction, told at length after an hour; nobody waits for them', async () => {
    let ahead = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const days = startDays({ clock });
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let isReading = false;
    const reading = store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT count(*) FROM runs`);
      isReading = true;
      await released;
    });
    await until(() => isReading || null);
    await days.passes();
    const [first] = days.of('historyDelayed');
    expect(first).toMatchObject({ work: 'make', day: day(1), lasts: false });
    const far = await runsAt(day(1));
    ahead = 3_600_000;
    await days.passes();
    await days.passes();
    expect(days.of('historyDelayed').map(({ lasts }) => lasts)).toEqual([false, true, false]);
    expect(await partitions(store)).toEqual(['runs_before_days']);
    release();
    await reading;
    await days.passes();
    await days.stop();
    expect(await tableOf(store, far)).toBe(nameOf(1));
  });
});

describe('traffic', () => {
  it('loses nothing while days are made, filled from the default partition, and dropped', async () => {
    await makeHistory(store, { from: 40, to: 33 });
    const receiver = await startReceiver();
    const instances = [await createInstance(store), await createInstance(store)];
    for (const instance of instances) await instance.start();
    const bus = createEventBus();
    const events: FirelockEvent[] = [];
    bus.subscribe((event) => void events.push(event));
    const retention = createRetention({
      database: store.database,
      schemaDatabase: store.database,
      clock: systemClock,
      events: bus,
      retentionDays: 30,
    });
    const done = new AbortController();
    const accepted: string[] = [];
    const [here] = instances;
    const producing = (async () => {
      for (let n = 0; !done.signal.aborted; n += 1) {
        const asked = Array.from({ length: 20 }, () => ({ url: receiver.url }));
        for (const { id } of (await here?.accept(...asked)) ?? []) accepted.push(id);
        // Far ahead: in the default partition, until a day is made for it under way.
        await here?.accept({ url: receiver.url, runAt: day(1 + (n % 3)) });
        await setTimeout(5);
      }
    })();
    await until(() => accepted.length > 100 || null);
    const days = [startDays(), startDays()];
    for (const one of days) await one.loop.start();
    await retention.start();
    await until(async () => {
      const names = await partitions(store);
      for (const one of days) one.loop.wake();
      return (COMING.every((name) => names.includes(name)) && !names.includes(nameOf(-40))) || null;
    });
    await until(() => events.some(({ type }) => type === 'historySeen') || null);
    done.abort();
    await producing;
    await until(async () => {
      const open = await store.rows(
        sql`SELECT FROM runs WHERE status <> 'succeeded' AND scheduled_for < clock_timestamp()`,
      );
      return open.length === 0 || null;
    });
    await retention.stop();
    for (const one of days) await one.stop();
    for (const instance of instances) await instance.stop();
    await receiver.close();
    expect(receiver.arrivals).toHaveLength(accepted.length);
    const ended = await store.rows<{ id: string }>(
      sql`SELECT id FROM runs WHERE status = 'succeeded' AND attempts = 1`,
    );
    expect(ended.map(({ id }) => id).sort()).toEqual([...accepted].sort());
    expect(
      await store.rows(
        sql`SELECT FROM runs_other WHERE scheduled_for >= ${new Date(day(1)).toISOString()}::timestamptz`,
      ),
    ).toEqual([]);
    expect(
      [...events, ...days.flatMap((one) => one.of('loopFailed'))].filter(({ type }) => type === 'loopFailed'),
    ).toEqual([]);
    expect(instances.flatMap((one) => one.events).filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });
});
