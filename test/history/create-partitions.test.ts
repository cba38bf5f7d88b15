import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { type Instant, DAY_MS } from '../../src/core/instant.ts';
import { createPartitionMaker } from '../../src/history/create-partitions.ts';
import { createPartitionDropper } from '../../src/history/drop-partitions.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { isNotNow } from '../../src/postgres/errors.ts';
import { createPartition } from '../../src/postgres/history-partitions.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { storeOfTest } from '../support/of-test.ts';
import {
  dayAgo,
  dropAllPartitions,
  endedIds,
  endedRun,
  endedRuns,
  makePartitions,
  partitionOf,
  partitions,
  tableOf,
  whileHistoryIsRead,
} from '../support/history.ts';
import { LONG } from '../support/runner/long.ts';
import { type Store, createInstance } from '../support/pipeline.ts';
import { startReceiver } from '../support/receiver.ts';
import { passingClock } from '../support/clocks.ts';
import { until } from '../support/until.ts';

const TODAY = dayAgo(0);
const day = (ahead: number) => TODAY + ahead * DAY_MS;
/** Of today and the coming days. */
const ALL = [0, 1, 2, 3].map((ahead) => partitionOf(day(ahead)));

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
});

interface Maker {
  of<T extends FirelockEvent['type']>(type: T): Extract<FirelockEvent, { type: T }>[];
  /** Resolves once a pass has come to its end, whatever it could do. */
  passes(): Promise<void>;
  wake(): void;
  stop(): Promise<void>;
}

function startMaker(clock = systemClock): Maker {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const { database } = store;
  const loop = createPartitionMaker({ database, clock, events: bus });
  const of: Maker['of'] = (type) =>
    events.filter((event): event is Extract<FirelockEvent, { type: typeof type }> => event.type === type);
  const ends = () => of('partitionsCreated').length + of('loopFailed').length;
  return {
    of,
    passes: async () => {
      const before = ends();
      if (loop.passes() === 0) await loop.start();
      else loop.wake();
      await until(() => ends() > before || null);
    },
    wake: () => loop.wake(),
    stop: async () => {
      await loop.stop();
    },
  };
}

async function pass(): Promise<Maker> {
  const maker = startMaker();
  await maker.passes();
  await maker.stop();
  return maker;
}

describe('today and the coming days', () => {
  it('have partitions from the start, with all indexes and settings that others have', async () => {
    expect(await partitions(store)).toEqual(ALL);
    const indexes = (table: string) =>
      store.rows(sql`SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', '') AS definition, indisvalid
        FROM pg_index WHERE indrelid = ${table}::regclass ORDER BY 1`);
    const ofHistory = await indexes('history');
    expect(ofHistory).toHaveLength(12);
    for (const table of [...ALL, 'history_other']) expect(await indexes(table)).toEqual(ofHistory);
    const settings = await store.rows(sql`SELECT DISTINCT reloptions::text FROM pg_class
      WHERE relname IN (${sql.join(
        ALL.map((name) => sql`${name}`),
        sql`, `,
      )})`);
    expect(settings).toEqual([{ reloptions: expect.stringContaining('autovacuum_vacuum_insert') as string }]);
  });

  it('are where ended runs go, by the day on which they ended', async () => {
    const ids = [
      await endedRun(store, { endedAt: TODAY - 1 }),
      await endedRun(store, { endedAt: TODAY, scheduledFor: dayAgo(400) }),
      await endedRun(store, { endedAt: day(1) - 1, scheduledFor: day(300) }),
      await endedRun(store, { endedAt: day(1) }),
    ];
    const tables = await Promise.all(ids.map((id) => tableOf(store, id)));
    expect(tables).toEqual(['history_other', ALL[0], ALL[0], ALL[1]]);
  });

  it('get the partitions that are missing, once', async () => {
    await store.rows(sql.raw(`DROP TABLE ${ALL[1] ?? ''}, ${ALL[3] ?? ''}`));
    const maker = await pass();
    expect(maker.of('partitionsCreated')).toEqual([{ type: 'partitionsCreated', days: [day(1), day(3)] }]);
    expect(maker.of('partitionsCounted')).toEqual([{ type: 'partitionsCounted', ahead: 3 }]);
    expect(await partitions(store)).toEqual(ALL);
    const again = await pass();
    expect(again.of('partitionsCreated')).toEqual([{ type: 'partitionsCreated', days: [] }]);
    expect(again.of('partitionsCounted')).toEqual([{ type: 'partitionsCounted', ahead: 3 }]);
  });

  it('get them from one of several instances that look at the same moment', async () => {
    await dropAllPartitions(store);
    await endedRuns(store, { endedAt: TODAY }, 20);
    const makers = [startMaker(), startMaker(), startMaker()];
    await Promise.all(makers.map((maker) => maker.passes()));
    await until(async () => {
      for (const maker of makers) maker.wake();
      return (await partitions(store)).length === ALL.length || null;
    });
    await Promise.all(makers.map((maker) => maker.stop()));
    expect(await partitions(store)).toEqual(ALL);
    expect(makers.flatMap((maker) => maker.of('loopFailed'))).toEqual([]);
    const made = makers.flatMap((maker) => maker.of('partitionsCreated').flatMap(({ days }) => days));
    expect(made.length).toBeGreaterThanOrEqual(ALL.length);
    expect(await endedIds(store)).toHaveLength(20);
  });
});

describe('after a week in which none were made', () => {
  /** As a version that was off for so long finds it: the newest partition is of a day that is over. */
  async function offForAWeek(): Promise<Record<'before' | 'today' | 'lastOfToday' | 'tomorrow', string>> {
    await dropAllPartitions(store);
    await makePartitions(store, [dayAgo(8), dayAgo(7)]);
    return {
      before: await endedRun(store, { endedAt: dayAgo(3) }),
      today: await endedRun(store, { endedAt: TODAY, status: 'failed', trigger: 'manual', key: 'k' }),
      lastOfToday: await endedRun(store, { endedAt: day(1) - 1 }),
      tomorrow: await endedRun(store, { endedAt: day(1) }),
    };
  }
  const rows = () => store.rows(sql`SELECT * FROM history ORDER BY id`);
  const old = [partitionOf(dayAgo(8)), partitionOf(dayAgo(7))];

  it('the migration makes those of today and the coming days at once, and moves what has ended on them', async () => {
    const ended = await offForAWeek();
    const before = await rows();
    expect(await migrate(store.url)).toBe(0);
    expect(await partitions(store)).toEqual([...old, ...ALL]);
    expect(await rows()).toEqual(before);
    expect(await tableOf(store, ended.before)).toBe('history_other');
    expect(await tableOf(store, ended.today)).toBe(ALL[0]);
    expect(await tableOf(store, ended.lastOfToday)).toBe(ALL[0]);
    expect(await tableOf(store, ended.tomorrow)).toBe(ALL[1]);
  });

  it('a daemon that worked on makes them in the same way', async () => {
    const ended = await offForAWeek();
    const before = await rows();
    const maker = await pass();
    expect(maker.of('partitionsCreated')).toMatchObject([{ days: [day(0), day(1), day(2), day(3)] }]);
    expect(await partitions(store)).toEqual([...old, ...ALL]);
    expect(await rows()).toEqual(before);
    expect(await tableOf(store, ended.before)).toBe('history_other');
    expect(await tableOf(store, ended.today)).toBe(ALL[0]);
  });

  it('the migration goes on without those for which it cannot take a lock', async () => {
    await offForAWeek();
    await whileHistoryIsRead(store, async () => {
      expect(await migrate(store.url)).toBe(0);
    });
    expect(await partitions(store)).toEqual(old);
    expect(await migrate(store.url)).toBe(0);
    expect(await partitions(store)).toEqual([...old, ...ALL]);
  });

  it('a partition whose rows take too long to move keeps no other from being made', async () => {
    const { today, tomorrow } = await offForAWeek();
    // As long as it takes where very much has ended.
    await store.rows(sql`CREATE FUNCTION is_very_much() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN IF old.id = tg_argv[0]::uuid THEN PERFORM pg_sleep(60); END IF; RETURN old; END'`);
    await store.rows(
      sql.raw(`CREATE TRIGGER is_very_much BEFORE DELETE ON history_other FOR EACH ROW
        EXECUTE FUNCTION is_very_much('${today}')`),
    );
    const maker = await pass();
    expect(maker.of('historyDelayed')).toMatchObject([{ work: 'create', day: TODAY, lasts: false }]);
    expect(maker.of('partitionsCreated')).toMatchObject([{ days: [day(1), day(2), day(3)] }]);
    expect(maker.of('partitionsCounted')).toMatchObject([{ ahead: 3 }]);
    expect(await partitions(store)).toEqual([...old, ...ALL.slice(1)]);
    expect(await tableOf(store, today)).toBe('history_other');
    expect(await tableOf(store, tomorrow)).toBe(ALL[1]);
    await store.rows(sql`DROP TRIGGER is_very_much ON history_other`);
    await store.rows(sql`DROP FUNCTION is_very_much`);
    await pass();
    expect(await tableOf(store, today)).toBe(ALL[0]);
  });
});

describe('a partition that cannot be made because of a lock', () => {
  it('is tried again, and logged after an hour; meanwhile all works on', async () => {
    await dropAllPartitions(store);
    const { clock, pass } = passingClock();
    const maker = startMaker(clock);
    const instance = await createInstance(store);
    const receiver = await startReceiver();
    await instance.start();
    await whileHistoryIsRead(store, async () => {
      await maker.passes();
      expect(maker.of('historyDelayed')[0]).toMatchObject({ work: 'create', day: TODAY, lasts: false });
      await instance.accept({ url: receiver.url });
      await until(async () => (await endedIds(store)).length === 1 || null);
      pass(3_600_000);
      await maker.passes();
      await maker.passes();
      expect(maker.of('historyDelayed').map(({ lasts }) => lasts)).toEqual([false, true, false]);
      expect(maker.of('historyDelayed')[1]?.forMs).toBeGreaterThanOrEqual(3_600_000);
      expect(await partitions(store)).toEqual([]);
    });
    await maker.passes();
    await maker.stop();
    await instance.stop();
    await receiver.close();
    const [ended] = await endedIds(store);
    expect(await tableOf(store, ended ?? '')).toBe(ALL[0]);
    expect(maker.of('partitionsCreated').map(({ days }) => days.length)).toEqual([0, 0, 0, 4]);
    expect(maker.of('partitionsCounted').map(({ ahead: there }) => there)).toEqual([0, 0, 0, 3]);
    expect(maker.of('loopFailed')).toEqual([]);
  });
});

describe('the coming days that have a partition are counted', () => {
  /** All partitions are gone, and what ended on these days cannot be moved: that fails with this error. */
  async function failingOn(days: readonly number[], error: string): Promise<() => Promise<void>> {
    await dropAllPartitions(store);
    for (const at of days) await endedRun(store, { endedAt: at });
    await store.rows(
      sql.raw(`CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ${error}; END'`),
    );
    await store.rows(sql`CREATE TRIGGER fails BEFORE DELETE ON history_other FOR EACH ROW EXECUTE FUNCTION fails()`);
    return async () => {
      await store.rows(sql`DROP FUNCTION fails CASCADE`);
    };
  }
  const counted = (maker: Maker) => maker.of('partitionsCounted').map(({ ahead }) => ahead);

  it('if a lock could not be taken for some', async () => {
    const works = await failingOn([day(1), day(3)], 'lock_not_available');
    const maker = await pass();
    expect(maker.of('historyDelayed')).toMatchObject([{ work: 'create', day: day(1) }]);
    expect(maker.of('partitionsCreated')).toMatchObject([{ days: [day(0), day(2)] }]);
    expect(counted(maker)).toEqual([1]);
    await works();
    expect(counted(await pass())).toEqual([3]);
  });

  it('if the role may not create them, which does not count as a sign of life', async () => {
    const works = await failingOn([day(1)], 'insufficient_privilege');
    const maker = await pass();
    expect(maker.of('loopFailed')).toMatchObject([{ loop: 'partitions' }]);
    expect(maker.of('partitionsCreated')).toEqual([]);
    expect(counted(maker)).toEqual([0]);
    await works();
    expect(counted(await pass())).toEqual([3]);
  });

  it('if something else has their name', async () => {
    await store.rows(sql.raw(`DROP TABLE ${ALL[2] ?? ''}, ${ALL[3] ?? ''}`));
    await store.rows(sql.raw(`CREATE TABLE ${ALL[2] ?? ''} (id uuid)`));
    expect(counted(await pass())).toEqual([2]);
  });
});

describe('traffic', { tags: [LONG] }, () => {
  it('loses no end while partitions are made, filled from the default one, and dropped', async () => {
    await makePartitions(store, [40, 39, 38].map(dayAgo));
    await endedRuns(store, { endedAt: dayAgo(39) }, 100);
    const before = await endedIds(store);
    const receiver = await startReceiver();
    const instances = [await createInstance(store), await createInstance(store)];
    for (const instance of instances) await instance.start();
    const bus = createEventBus();
    const events: FirelockEvent[] = [];
    bus.subscribe((event) => void events.push(event));
    const { database } = store;
    const dropper = createPartitionDropper({
      database,
      clock: systemClock,
      events: bus,
      retentionDays: 30,
      intervalMs: 100,
    });
    const done = new AbortController();
    const accepted: string[] = [];
    const producing = (async () => {
      while (!done.signal.aborted) {
        const asked = Array.from({ length: 20 }, () => ({ url: receiver.url }));
        for (const { id } of (await instances[0]?.accept(...asked)) ?? []) accepted.push(id);
        await setTimeout(5);
      }
    })();
    // Today's goes, with what has ended meanwhile put back where it would have gone, and comes again.
    const makers = [startMaker(), startMaker()];
    await dropper.start();
    for (let round = 0; round < 10; round += 1) {
      const wanted = accepted.length + 40;
      await until(() => accepted.length > wanted || null);
      await store.rows(
        sql.raw(`BEGIN; ALTER TABLE history DETACH PARTITION ${ALL[0] ?? ''};
        INSERT INTO history_other SELECT * FROM ${ALL[0] ?? ''}; DROP TABLE ${ALL[0] ?? ''}; COMMIT`),
      );
      await until(async () => {
        await Promise.all(makers.map((maker) => maker.passes()));
        return (await partitions(store)).includes(ALL[0] ?? '') || null;
      });
    }
    await until(async () => !(await partitions(store)).includes(partitionOf(dayAgo(38))) || null);
    done.abort();
    await producing;
    await until(async () => {
      const [open] = await store.rows<{ count: number }>(sql`SELECT count(*)::int AS count FROM runs`);
      return open?.count === 0 || null;
    });
    await dropper.stop();
    for (const maker of makers) await maker.stop();
    for (const instance of instances) await instance.stop();
    await receiver.close();
    const ended = await store.rows<{ id: string; status: string; attempts: number; name: string }>(
      sql`SELECT id, status, attempts, tableoid::regclass::text AS name FROM history ORDER BY id`,
    );
    expect(before).toHaveLength(100);
    expect(ended).toEqual([...accepted].sort().map((id) => ({ id, status: 'succeeded', attempts: 1, name: ALL[0] })));
    const all = [...events, ...makers.flatMap((maker) => maker.of('loopFailed'))];
    expect(all.filter(({ type }) => type === 'loopFailed')).toEqual([]);
    expect(instances.flatMap((one) => one.events).filter(({ type }) => type === 'loopFailed')).toEqual([]);
  });

  /** On a busy machine a lock may not be had in time. */
  const createdInTheEnd = (at: Instant) =>
    until(() =>
      store.database
        .run((db) => createPartition(db, at))
        .then(
          () => true,
          (error: unknown) => {
            if (isNotNow(error)) return null;
            throw error;
          },
        ),
    );

  it('ends on a day at the moment when that gets its partition', async () => {
    const made = Array.from({ length: 20 }, (_, n) => day(10 + n));
    const ids: string[] = [];
    for (const at of made) {
      const [, ...ended] = await Promise.all([
        createdInTheEnd(at),
        ...[0, 1, 2, 3].map((n) => endedRun(store, { endedAt: at + n })),
      ]);
      ids.push(...ended);
    }
    expect(await endedIds(store)).toEqual(ids.sort());
    const names = await Promise.all(ids.map((id) => tableOf(store, id)));
    expect(names).not.toContain('history_other');
  });
});
