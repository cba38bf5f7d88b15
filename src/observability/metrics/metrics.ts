import { Registry, collectDefaultMetrics } from 'prom-client';
import type { Mode } from '../../core/installation.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { InstallationWatch } from '../../runtime/installation-watch.ts';
import { type DatabaseGauges, gaugesOfDatabase } from './database-metrics.ts';
import { countEvents } from './event-metrics.ts';
import { metricsIn } from './metric-kinds.ts';
import type { DatabaseClock } from '../../runtime/database-clock.ts';
import type { Turning } from '../../runtime/loop/loop.ts';
import type { Database } from '../../postgres/database.ts';
import type { PoolUsage } from '../../postgres/pool.ts';

export interface Metrics extends DatabaseGauges {
  contentType: string;
  /** The Prometheus text format; asks nothing of the database. */
  text(): Promise<string>;
  /** Call it once, when the instance has been built. */
  observe(parts: InstanceParts): void;
}

interface MetricsDeps {
  clock: Clock;
  events: EventBus;
  version: string;
  zoneData: string;
  inFlight: () => number;
  leaseValid: () => boolean;
  installation: Pick<InstallationWatch, 'current'>;
}

/** Counters count events of this process since its start; gauges over the database are sampled. */
export function createMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  countEvents(registry, deps.events);
  observeProcess(registry, deps);
  return {
    contentType: registry.contentType,
    text: async () => (await registry.metrics()).replace(NOTHING_MEASURED, ''),
    observe: (parts) => observeInstance(registry, parts),
    ...gaugesOfDatabase(registry, deps.clock),
  };
}

/**
 * Samples of the event loop's lag between two scrapes that were too close to each other. prom-client writes `Nan`, which Prometheus
 * does not read, and the largest number as the smallest lag.
 */
const NOTHING_MEASURED = /^.* (?:Nan|9223372036\.8\d*)\n/gm;

function observeProcess(registry: Registry, deps: MetricsDeps): void {
  const { gauge, readGauge } = metricsIn(registry);
  readGauge('firelock_in_flight_handoffs', 'Attempts under way in this process.', deps.inFlight);
  readGauge('firelock_lease_valid', '1 while the last heartbeat is young enough to act on claims.', () =>
    deps.leaseValid() ? 1 : 0,
  );
  const isOneOf = (modes: readonly Mode[]) => (modes.includes(deps.installation.current().mode) ? 1 : 0);
  readGauge('firelock_observing', '1 while this instance only observes: it plans and sends nothing.', () =>
    isOneOf(['observes']),
  );
  readGauge('firelock_maintenance', '1 while maintenance is in force, as far as this instance knows.', () =>
    isOneOf(['plansNothing', 'holds']),
  );
  gauge('firelock_info', 'The version of this process.', 'version').set({ version: deps.version }, 1);
  gauge('firelock_zone_data_info', 'The version of the time zone data of this process.', 'version').set(
    { version: deps.zoneData },
    1,
  );
}

/** The parts of an instance; known once all of them have been built. */
interface InstanceParts {
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
