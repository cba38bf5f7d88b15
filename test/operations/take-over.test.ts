import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../src/core/access/roles.ts';
import { InstancesLive } from '../../src/operations/resume.ts';
import { OperationRefused } from '../../src/operations/operation-refused.ts';
import { observe, takeOver } from '../../src/operations/installation-changes.ts';
import { openDatabase, readingOnly } from '../../src/postgres/database.ts';
import { isReadOnly } from '../../src/postgres/errors.ts';
import { auditorFor } from '../../src/store/audit/audit-rows.ts';
import { lockInstallation, readInstallation, setState } from '../../src/store/instances/installation-row.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { storeOfTest } from '../support/of-test.ts';
import type { Store } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
});

const CALLER: Caller = { name: 'ops', role: 'admin', scope: null };
const SINCE = Date.parse('2026-01-01T00:00:00Z');

const takeOverNow = (isSet: boolean) =>
  takeOver(
    {
      ...{ database: store.database, lockTtlSeconds: 60, signal: new AbortController().signal },
      ...{ isSet, auditor: auditorFor(CALLER) },
    },
    { since: SINCE, by: CALLER.name },
  );
const register = () =>
  store.database.run((db) =>
    registerUnlessObserving(db, {
      ...{ id: randomUUID(), host: 'test', version: 'test', zoneData: 'test', ttlSeconds: 3600 },
    }),
  );
const entries = () => store.rows(sql`SELECT detail FROM audit WHERE action = 'installation.take-over'`);

test.each([true, false])('of two take-overs at the same moment one is made (by the setting: %s)', async (isSet) => {
  if (!isSet) await store.database.transaction((tx) => observe(tx, null));
  const calls = await Promise.allSettled([takeOverNow(isSet), takeOverNow(isSet)]);
  const [refused, ...others] = calls.flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []));
  expect([refused, others]).toEqual([expect.any(OperationRefused), []]);
  expect(await entries()).toHaveLength(1);
  const { mode, tookOver } = await store.database.run(readInstallation);
  expect([mode, tookOver?.since, tookOver?.by]).toEqual(['works', SINCE, 'ops']);
  // Nor later, until an instance has worked.
  await expect(takeOverNow(isSet)).rejects.toThrow(isSet ? /took over already/ : /does not observe/);
});

test('no take-over is made beside an instance that works, and nothing is recorded as taken over', async () => {
  expect(await register()).toBe(true);
  await expect(takeOverNow(true)).rejects.toThrow(InstancesLive);
  expect([await entries(), (await store.database.run(readInstallation)).tookOver]).toEqual([[], null]);
});

test('an instance that registers while they begin to observe waits, and is not listed', async () => {
  let registering: Promise<boolean> | undefined;
  await store.database.transaction(async (tx) => {
    await lockInstallation(tx);
    registering = register();
    await until(async () => {
      const waiting = await store.rows(sql`SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND query LIKE '%registerUnlessObserving%'`);
      return waiting.length > 0 || null;
    });
    await setState(tx, { mode: 'observes', until: null, reason: 'a drill' });
  });
  expect(await registering).toBe(false);
  expect(await store.rows(sql`SELECT FROM instances`)).toEqual([]);
});

test('one that was silent cannot go on under its id once they observe', async () => {
  await register();
  await store.rows(sql`UPDATE instances SET heartbeat_at = heartbeat_at - interval '2 hours'`);
  await store.database.transaction((tx) => observe(tx, null));
  expect(await store.rows(sql`SELECT FROM instances WHERE died_at IS NULL`)).toEqual([]);
});

test('PostgreSQL refuses what an instance with FIRELOCK_OBSERVE writes, also in a transaction', async () => {
  const writing = openDatabase(store.url, 1);
  const reading = readingOnly(writing);
  try {
    const write = sql`DELETE FROM schedules`;
    for (const attempt of [reading.run((db) => db.execute(write)), reading.transaction((tx) => tx.execute(write))]) {
      const refusal: unknown = await attempt.catch((error: unknown) => error);
      expect(isReadOnly(refusal)).toBe(true);
    }
    expect(await reading.run((db) => db.execute(sql`SELECT 1 AS one`))).toHaveLength(1);
  } finally {
    await writing.close();
  }
});
