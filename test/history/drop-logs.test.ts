import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FirelockEvent } from '../../src/core/events.ts';
import { isoInstant, DAY_MS } from '../../src/core/instant.ts';
import { logRoom } from '../../src/core/runs/run-log.ts';
import { createPartitionDropper } from '../../src/history/drop-partitions.ts';
import { createPartition, listPartitions } from '../../src/postgres/history-partitions.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { appendToLockedLog, hasRunLog } from '../../src/store/runs/logs/append-log.ts';
import { readLog } from '../../src/store/runs/logs/read-log.ts';
import { dayAgo, endedRun, endedRuns, partitionOf } from '../support/history.ts';
import { sqlOfTest, storeOfTest } from '../support/of-test.ts';
import { changeRun } from '../support/run-rows.ts';
import type { Store } from '../support/pipeline.ts';
import { notingAll } from '../support/postgres/noting.ts';
import { until } from '../support/until.ts';

const DAYS = 30;
const OLD = 40;
const NOON = DAY_MS / 2;
const ROOM = logRoom(1024);

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
});

const append = (runId: string, text: string, offset = 0) =>
  store.database.transaction((tx) =>
    appendToLockedLog(tx, runId, { attempt: 2, offset, bytes: Buffer.from(text) }, ROOM),
  );
const logOf = async (runId: string) =>
  (await store.database.run((db) => readLog(db, { runId, attempt: 2, offset: 0 }, ROOM)))?.bytes.toString();
/** In which partition the rows of a run stand. */
const placesOf = async (runId: string) =>
  (
    await store.rows<{ name: string }>(
      sql`SELECT tableoid::regclass::text AS name FROM run_logs WHERE run_id = ${runId}::uuid ORDER BY place`,
    )
  ).map(({ name }) => name);
const tableOfDay = (days: number) => `run_logs_${isoInstant(dayAgo(days)).slice(0, 10).replaceAll('-', '')}`;
/** As if the rows had been written on the day on which the run was due. */
const asThen = (days: number) =>
  store.rows(sql`UPDATE run_logs SET day = ${isoInstant(dayAgo(days))} WHERE day = 'infinity'`);

/** One round. */
async function drop(database = store.database): Promise<FirelockEvent[]> {
  const bus = createEventBus();
  const events: FirelockEvent[] = [];
  bus.subscribe((event) => void events.push(event));
  const deps = { database, clock: systemClock, events: bus, retentionDays: DAYS };
  const loop = createPartitionDropper({ ...deps, intervalMs: 1_000_000 });
  await loop.start();
  await until(() => events.some(({ type }) => type === 'historySeen') || null);
  await loop.stop();
  return events;
}

describe('the log of a run', () => {
  it('stands with the day on which the run was due, and what is written days later by itself', async () => {
    for (const [days, table] of [
      [0, tableOfDay(0)],
      [OLD, 'run_logs_late'],
    ] as const) {
      const id = await endedRun(store, { endedAt: Date.now(), scheduledFor: dayAgo(days) });
      await store.database.run((db) => createPartition(db, dayAgo(days), 'run_logs'));
      expect(await append(id, 'x'.repeat(2_000))).toBe(2_000);
      await append(id, 'y', 2_000);
      expect(await placesOf(id)).toEqual([table, table]);
      expect(await logOf(id)).toBe(`${'x'.repeat(2_000)}y`);
      expect(await store.database.run((db) => hasRunLog(db, id, 2))).toBe(true);
      expect(await store.database.run((db) => hasRunLog(db, id, 1))).toBe(false);
    }
  });

  it('goes on where it is when its first part has moved away from its day', async () => {
    const id = await endedRun(store, { endedAt: Date.now() });
    await append(id, 'one ');
    await store.rows(sql`UPDATE run_logs SET day = 'infinity'`);
    await append(id, 'two ', 4);
    await append(id, 'z'.repeat(2_000), 8);
    expect(await placesOf(id)).toEqual(['run_logs_late', tableOfDay(0)]);
    expect(await logOf(id)).toBe(`one two ${'z'.repeat(2_000)}`);
  });
});

describe('a day of logs', () => {
  it('is dropped unread when its runs are gone, two days later than history', async () => {
    for (const days of [OLD, DAYS + 4, DAYS + 3, DAYS + 2]) {
      await store.database.run((db) => createPartition(db, dayAgo(days), 'run_logs'));
      const [id = ''] = await endedRuns(store, { endedAt: dayAgo(days) + NOON });
      await append(id, 'printed');
      await asThen(days);
    }
    const statements = await drop();
    expect(statements.filter(({ type }) => type === 'loopFailed')).toEqual([]);
    const left = (await store.database.run((db) => listPartitions(db, 'run_logs'))).map(({ day }) => day);
    expect(left).toEqual([DAYS + 3, DAYS + 2, 0, -1, -2, -3].map(dayAgo));
    const rows = await store.rows(sql`SELECT tableoid::regclass::text AS name FROM run_logs ORDER BY day`);
    expect(rows).toEqual([DAYS + 3, DAYS + 2].map((days) => ({ name: tableOfDay(days) })));
  });

  it('is not written elsewhere first where its runs go in the same round, since history is to be kept for less time', async () => {
    for (const days of [OLD, OLD - 1, OLD - 2]) {
      for (const parent of ['history', 'run_logs'] as const)
        await store.database.run((db) => createPartition(db, dayAgo(days), parent));
      for (const id of await endedRuns(store, { endedAt: dayAgo(days) + NOON }, 5)) await append(id, 'printed');
      await asThen(days);
    }
    const statements: string[] = [];
    await drop(notingAll(store.database, statements));
    // It looked once at each day, and found nothing to move.
    expect(statements.filter((name) => name === 'moveKeptLogs')).toHaveLength(3);
    expect(await store.rows(sql`SELECT FROM run_logs`)).toEqual([]);
  });

  it('stays while its day of history does', async () => {
    for (const parent of ['history', 'run_logs'] as const)
      await store.database.run((db) => createPartition(db, dayAgo(OLD), parent));
    const id = await endedRun(store, { endedAt: dayAgo(OLD) + NOON });
    await append(id, 'printed');
    await asThen(OLD);
    await store.rows(sql.raw(`CREATE VIEW in_the_way AS SELECT * FROM ${partitionOf(dayAgo(OLD))}`));
    await drop();
    expect(await placesOf(id)).toEqual([tableOfDay(OLD)]);
    expect(await logOf(id)).toBe('printed');
  });

  it('leaves the logs of those of its runs that are kept: of late ends, and of open ones', async () => {
    const kept = await endedRuns(store, { endedAt: dayAgo(1), scheduledFor: dayAgo(OLD) + NOON }, 50);
    const [open = ''] = kept;
    await changeRun(sqlOfTest(store.url), open, { status: 'running', due_at: isoInstant(dayAgo(OLD)) });
    const gone = await endedRun(store, { endedAt: dayAgo(OLD) + NOON });
    await store.database.run((db) => createPartition(db, dayAgo(OLD), 'run_logs'));
    for (const id of [...kept, gone]) await append(id, `of ${id}`);
    await asThen(OLD);
    expect(await placesOf(open)).toEqual([tableOfDay(OLD)]);
    await drop();
    expect((await store.database.run((db) => listPartitions(db, 'run_logs'))).length).toBe(4);
    for (const id of kept) {
      expect(await logOf(id)).toBe(`of ${id}`);
      expect(await placesOf(id)).toEqual(['run_logs_late']);
    }
    expect(await placesOf(gone)).toEqual([]);
  });

  it('has nothing to do with what was written days later: that goes when its run has gone', async () => {
    const [kept, gone] = [
      await endedRun(store, { endedAt: dayAgo(1), scheduledFor: dayAgo(OLD) }),
      await endedRun(store, { endedAt: dayAgo(OLD - 4), scheduledFor: dayAgo(OLD) + NOON }),
    ];
    for (const id of [kept, gone]) await append(id, 'late');
    await drop();
    expect(await placesOf(kept)).toEqual(['run_logs_late']);
    expect(await placesOf(gone)).toEqual([]);
  });
});
