/**
 * Guarantees: a run that does not keep a bound of `expect` is found within seconds after that passed, once, over any instances; that its
 *   schedule is broken is written in the same commit.
 * Transaction: one for a batch of runs; rows that others have locked are left for the next pass.
 * If the process dies here: the rows say which bounds have passed, and any instance judges them.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { inHalves } from '../runtime/loop/batch.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Rests, createRests } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Database } from '../postgres/database.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import { findPassedBounds, judgePassedBounds } from '../store/runs/bounds/passed-bounds.ts';

interface ExpectWatchDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  wake: Wake;
}

/** The API promises that it is noticed within ten seconds. */
const LOOK_EVERY_MS = 4_000;
const BATCH = 500;
/** After a full batch, which leaves time for others. */
const MORE_MS = 100;

interface State extends ExpectWatchDeps {
  /** Runs whose row was refused. */
  rests: Rests;
}

export function createExpectWatch(deps: ExpectWatchDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, rests: createRests({ clock, events, loop: 'expect-watch' }) };
  return createLoop({ name: 'expect-watch', clock, events, body: () => pass(state) });
}

async function pass(state: State): Promise<number> {
  const { database, events, lease, rests, wake } = state;
  // After an outage, the waiting outcomes are written before the lease is valid again: an end among them that came in time counts.
  if (!lease.isValid()) return LOOK_EVERY_MS;
  const ids = await database.run((db) => findPassedBounds(db, { limit: BATCH, besides: rests.keys() }));
  await inHalves(ids, {
    work: async (some) => {
      const effects = await database.transaction((tx) => judgePassedBounds(tx, some));
      wakeFor(wake, { effects });
    },
    faultOf: batchFaultOf,
    wasSetAside: (id) => rests.wasSetAside(id),
    setAside: (id, error) => {
      rests.add(id);
      events.emit({ type: 'boundRefused', runId: id, error: reasonOf(error) });
    },
  });
  return ids.length === BATCH ? MORE_MS : LOOK_EVERY_MS;
}
