import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import { sampleGauges } from '../store/gauges.ts';
import type { Metrics } from './metrics.ts';

export interface GaugeSamplerDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  metrics: Metrics;
  tickIntervalMs: number;
}

const SAMPLE_EVERY_MS = 10_000;

/** Looks at the database now and then, so that a scrape never has to. */
export function createGaugeSampler(deps: GaugeSamplerDeps): Loop {
  const { database, clock, events, metrics, tickIntervalMs } = deps;
  const overdueSeconds = (3 * tickIntervalMs) / 1000;
  return createLoop({
    name: 'gauges',
    clock,
    body: async () => {
      const gauges = await database.run((db) => sampleGauges(db, overdueSeconds));
      metrics.sampled(gauges);
      const { strandedRuns, zoneData } = gauges;
      events.emit({ type: 'gaugesSampled', strandedRuns, zoneData });
      return SAMPLE_EVERY_MS;
    },
    events,
  });
}
