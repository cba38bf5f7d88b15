import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from './database.ts';

/** What every loop over the database needs. */
export interface LoopDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
}
