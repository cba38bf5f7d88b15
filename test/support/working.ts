import { systemClock } from '../../src/runtime/clock.ts';
import { createDatabaseClock } from '../../src/runtime/database-clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createInstallationWatch } from '../../src/runtime/installation-watch.ts';

/** What an instance knows whose database has not said anything yet; `isSet`: FIRELOCK_OBSERVE is. */
export const installationUnseen = (isSet = false, events = createEventBus()) =>
  createInstallationWatch(
    { events, clock: systemClock, databaseClock: createDatabaseClock(systemClock) },
    isSet,
  );
