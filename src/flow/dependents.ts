/**
 * Guarantees: a run that needs one that did not succeed fails, and so do those that need it in turn, however many in a row; of a run
 * with very many dependents, those are released that its end left.
 * Transaction: one for a batch; it also counts these ends on the rows of the next ones.
 * If the process dies here: those that are to fail say so in their rows, and open edges of ended runs are there; recovery looks for both.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import { failDependents, releaseDependentsIfStillEnded } from '../store/dependents.ts';
import type { Aftermath, EndedDependency } from '../store/followers.ts';
import type { OpenSpan } from '../store/open-runs.ts';

export interface DependentsDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  openSpan: OpenSpan;
  followUp: (aftermath: Aftermath) => void;
}

export interface Dependents extends Turning {
  /** There may be some that fail, and some of these are still to be released. */
  look(toRelease: readonly EndedDependency[]): void;
}

const BATCH = 500;
const IDLE_MS = 60_000;

export function createDependents({
  database,
  clock,
  events,
  openSpan,
  followUp,
}: DependentsDeps): Dependents {
  /** Ids of what has ended. */
  const ended = new Set<string>();
  const loop = createLoop({ name: 'dependents', clock, events, body: pass });

  async function pass(): Promise<number> {
    const [next] = ended;
    if (next !== undefined) await release(next);
    const { failed, runIds, aftermath } = await database.transaction((tx) =>
      failDependents(tx, openSpan.since(), BATCH),
    );
    if (failed > 0) events.emit({ type: 'dependentsFailed', count: failed, runIds });
    followUp({ ...aftermath, toFail: false });
    return failed > 0 || ended.size > 0 ? 0 : IDLE_MS;
  }

  async function release(id: string): Promise<void> {
    const aftermath = await database.transaction((tx) => releaseDependentsIfStillEnded(tx, [id]));
    // Behind the others: what is left of it may be held by somebody.
    ended.delete(id);
    if (aftermath.toRelease.length > 0) ended.add(id);
    followUp({ ...aftermath, toFail: false, toRelease: [] });
  }

  return {
    ...turningOf(loop),
    look: (toRelease) => {
      for (const { id } of toRelease) ended.add(id);
      loop.wake();
    },
  };
}
