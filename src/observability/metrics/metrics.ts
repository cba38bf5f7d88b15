import { Registry, collectDefaultMetrics } from 'prom-client';
import type { Mode } from '../../core/installation.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { InstallationWatch } from '../../runtime/installation-watch.ts';
import { type DatabaseGauges, gaugesOfDatabase } from './database-metrics.ts';
import { countEvents } from './event-metrics.ts';
import { type InstanceParts, observeInstance } from './instance-metrics.ts';
import { metricsIn } from './metric-kinds.ts';

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
