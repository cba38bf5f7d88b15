import type { Registry } from 'prom-client';
import type { Clock } from '../../runtime/clock.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import type { Turning } from '../../runtime/loop/loop.ts';
import type { Database } from '../../postgres/database.ts';
import type { PoolUsage } from '../../postgres/pool.ts';
import { metricsIn } from './metric-kinds.ts';

/** The parts of an instance; known once all of them have been built. */
export interface InstanceParts {
  clock: Clock;
  databaseClock: DatabaseClock;
  pools: Record<string, Database>;
  loops: readonly Turning[];
  /** The version of its time zone data. */
  zoneData: string;
}

/** Gauges of this process, which each scrape reads. */
export function observeInstance(registry: Registry, parts: InstanceParts): void {
  observeClocks(registry, parts);
  observeLoops(registry, parts.loops);
  observePools(registry, parts.pools);
}

function observeClocks(registry: Registry, { clock, databaseClock, zoneData }: InstanceParts): void {
  const { gauge, readGauge } = metricsIn(registry);
  readGauge(
    'firelock_clock_ahead_seconds',
    'How far this machine’s clock is ahead of the database’s, by the last answered heartbeat; negative: behind.',
    () => (clock.now() - databaseClock.now()) / 1000,
  );
  const year = Number(/^\d{4}/.exec(zoneData)?.[0]);
  const released = gauge(
    'firelock_zone_data_year',
    'The year in which the time zone data of this process were released; absent if its version does not say so.',
  );
  if (Number.isNaN(year)) released.remove();
  else released.set(year);
}

function observeLoops(registry: Registry, loops: readonly Turning[]): void {
  const { readGauges } = metricsIn(registry);
  const byLoop = (name: string, help: string, ms: (loop: Turning) => number) =>
    readGauges(name, help, 'loop', () => loops.map((loop) => [loop.name, ms(loop) / 1000]));
  byLoop(
    'firelock_loop_pass_seconds',
    'How long the pass of a loop that is under way has taken; 0 between passes. After two minutes the process ends.',
    (loop) => loop.inPassMs(),
  );
  byLoop(
    'firelock_loop_failing_seconds',
    'How long every pass of a loop has failed; 0 if its last pass succeeded.',
    (loop) => loop.failingMs(),
  );
}

/** A pool that has two uses is counted once, under the first. */
function observePools(registry: Registry, pools: Record<string, Database>): void {
  const { readGauges } = metricsIn(registry);
  const own = Object.entries(pools).filter(
    ([, database], index, all) => all.findIndex(([, other]) => other === database) === index,
  );
  const byPool = (name: string, help: string, value: (usage: PoolUsage) => number) =>
    readGauges(name, help, 'pool', () =>
      own.flatMap(([pool, database]) => {
        const usage = database.usage?.();
        return usage ? [[pool, value(usage)]] : [];
      }),
    );
  byPool('firelock_database_connections', 'Connections of a pool.', ({ size }) => size);
  byPool('firelock_database_connections_busy', 'Those of them that work.', ({ busy }) => busy);
  byPool(
    'firelock_database_waiting',
    'Pieces of work that wait for a connection of a pool.',
    ({ waiting }) => waiting,
  );
}
