import { createMetrics } from '../../src/observability/metrics/metrics.ts';
import { type Clock, systemClock, createDatabaseClock } from '../../src/runtime/clock.ts';
import { type EventBus, createEventBus } from '../../src/runtime/event-bus.ts';
import { createInstallationWatch } from '../../src/runtime/installation-watch.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';

/** What an instance knows whose database has not said anything yet; `isSet`: FIRELOCK_OBSERVE is. */
export const installationUnseen = (isSet = false, events = createEventBus()) =>
  createInstallationWatch({ events, clock: systemClock, databaseClock: createDatabaseClock(systemClock) }, isSet);

/** The metrics of an instance that does nothing but what the events say. */
export const metricsOf = (events: EventBus, clock: Clock = systemClock) =>
  createMetrics({
    ...{ clock, events, version: '0', zoneData: 'a', installation: installationUnseen() },
    ...{ inFlight: () => 0, leaseValid: () => true },
  });

const nothing = () => undefined;
/** Of an instance without loops. */
export const NO_WAKE: Wake = {
  ...{ effects: nothing, dispatch: nothing, workers: nothing, admission: nothing, alerts: nothing },
};
