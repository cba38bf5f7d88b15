import { databaseTrouble } from '../core/database-trouble.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from './database.ts';

/** The same database, which tells of work that fails because of the database, whoever asked for it. */
export function tellingTroubles(database: Database, events: Pick<EventBus, 'emit'>): Database {
  async function telling<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (databaseTrouble(error) !== null) events.emit({ type: 'databaseFailed', error });
      throw error;
    }
  }
  return {
    ...database,
    run: (work, limitMs) => telling(database.run(work, limitMs)),
    transaction: (work, limitMs) => telling(database.transaction(work, limitMs)),
  };
}
