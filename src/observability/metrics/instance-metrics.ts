import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../runtime/clock.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import type { Turning } from '../../runtime/loop/loop.ts';
import type { Database, PoolUsage } from '../../postgres/database.ts';

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
  const registers = [registry];
  new Gauge({
    name: 'firelock_clock_ahead_seconds',
    help: 'How far this machine’s clock is ahead of the database’s, by the last answered heartbeat; negative: behind.',
    registers,
    collect() {
      this.set((clock.now() - databaseClock.now()) / 1000);
    },
  });
  const year = Number(/^\d{4}/.exec(zoneData)?.[0]);
  const gauge = new Gauge({
    name: 'firelock_zone_data_year',
    help: 'The year in which the time zone data of this process were released; absent if its version does not say so.',
    registers,
  });
  if (Number.isNaN(year)) gauge.remove();
  else gauge.set(year);
}

function observeLoops(registry: Registry, loops: readonly Turning[]): void {
  const byLoop = (name: string, help: string, seconds: (loop: Turning) => number) => {
    new Gauge({
      name,
      help,
      labelNames: ['loop'],
      registers: [registry],
      collect() {
        for (const loop of loops) this.set({ loop: loop.name }, seconds(loop));
      },
    });
  };
  byLoop(
    'firelock_loop_pass_seconds',
    'How long the pass of a loop that is under way has taken; 0 between passes. After two minutes the process ends.',
    (loop) => loop.inPassMs() / 1000,
  );
  byLoop(
    'firelock_loop_failing_seconds',
    'How long every pass of a loop has failed; 0 if its last pass succeeded.',
    (loop) => loop.failingMs() / 1000,
  );
}

/** A pool that has two uses is counted once, under the first. */
function observePools(registry: Registry, pools: Record<string, Database>): void {
  const own = Object.entries(pools).filter(
    ([, database], index, all) => all.findIndex(([, other]) => other === database) === index,
  );
  const byPool = (name: string, help: string, value: (usage: PoolUsage) => number) => {
    new Gauge({
      name,
      help,
      labelNames: ['pool'],
      registers: [registry],
      collect() {
        for (const [pool, database] of own) {
          const usage = database.usage?.();
          if (usage) this.set({ pool }, value(usage));
        }
      },
    });
  };
  byPool('firelock_database_connections', 'Connections of a pool.', ({ size }) => size);
  byPool('firelock_database_connections_busy', 'Those of them that work.', ({ busy }) => busy);
  byPool(
    'firelock_database_waiting',
    'Pieces of work that wait for a connection of a pool.',
    ({ waiting }) => waiting,
  );
}
