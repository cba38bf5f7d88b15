/**
 * Guarantees: a run that needs one that did not succeed fails, and so do those that need it in turn, however many in a row.
 * Transaction: one for a batch; it also counts these ends on the rows of the next ones.
 * If the process dies here: those that are to fail say so in their rows; recovery has them looked for.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import { failDependents } from '../store/dependents.ts';
import type { Aftermath } from '../store/followers.ts';

export interface FailingDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  followUp: (aftermath: Aftermath) => void;
}

const BATCH = 500;
const IDLE_MS = 60_000;

export function createFailing({ database, clock, events, followUp }: FailingDeps): Loop {
  return createLoop({
    name: 'dependents',
    clock,
    events,
    body: async () => {
      const { failed, aftermath } = await database.transaction((tx) => failDependents(tx, BATCH));
      if (failed > 0) events.emit({ type: 'dependentsFailed', count: failed });
      followUp({ ...aftermath, toFail: false });
      return failed > 0 ? 0 : IDLE_MS;
    },
  });
}
