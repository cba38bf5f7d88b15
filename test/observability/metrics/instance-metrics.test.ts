import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { observeInstance } from '../../../src/observability/metrics/metrics.ts';
import { createDatabaseClock } from '../../../src/runtime/database-clock.ts';
import type { Turning } from '../../../src/runtime/loop/loop.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { settableClock } from '../../api/access/support.ts';

test('a scrape says how far the clock is off, how its loops fare, and how many wait for a connection', async () => {
  const { clock, value, databaseClock } = observed({ zoneData: '2025c' });
  expect(await value('firelock_clock_ahead_seconds')).toBe(0);
  databaseClock.sample(clock.now() - 1500, clock.monotonic());
  expect(await value('firelock_clock_ahead_seconds')).toBe(1.5);
  expect(await value('firelock_loop_pass_seconds{loop="tick"}')).toBe(31);
  expect(await value('firelock_loop_failing_seconds{loop="tick"}')).toBe(2);
  expect(await value('firelock_database_connections{pool="main"}')).toBe(5);
  expect(await value('firelock_database_connections_busy{pool="main"}')).toBe(4);
  expect(await value('firelock_database_waiting{pool="main"}')).toBe(3);
  expect(await value('firelock_database_waiting{pool="background"}')).toBeUndefined();
  expect(await value('firelock_database_waiting{pool="foreign"}')).toBeUndefined();
  expect(await value('firelock_zone_data_year')).toBe(2025);
});

test('zone data whose version names no year have none', async () => {
  expect(await observed({ zoneData: 'unknown' }).value('firelock_zone_data_year')).toBeUndefined();
});

function observed({ zoneData }: { zoneData: string }) {
  const clock = settableClock();
  const databaseClock = createDatabaseClock(clock);
  const registry = new Registry();
  const idle = () => Promise.reject(new Error('not asked'));
  const foreign: Database = { run: idle, transaction: idle, close: idle };
  const main: Database = { ...foreign, usage: () => ({ size: 5, busy: 4, waiting: 3 }) };
  const tick: Turning = {
    name: 'tick',
    start: () => undefined,
    stop: () => undefined,
    passes: () => 1,
    inPassMs: () => 31_000,
    failingMs: () => 2_000,
  };
  observeInstance(registry, {
    clock,
    databaseClock,
    pools: { main, background: main, foreign },
    loops: [tick],
    zoneData,
  });
  const value = async (name: string): Promise<number | undefined> => {
    const line = (await registry.metrics()).split('\n').find((one) => one.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length));
  };
  return { clock, databaseClock, value };
}
