/**
 * Guarantees: a run that has waited longer than its `expiresAfterSeconds` ends within seconds, once, over any instances, whatever it waits
 *   for. No claim takes it meanwhile: claims look at the same moment of their run.
 * Transaction: one for a batch of runs, with what follows from their ends; rows that others have locked are left for the next pass.
 * If the process dies here: they are ended or not; any instance finds the same rows.
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
import { endIfExpired, findExpired } from '../store/runs/begin-by.ts';

interface WaitingWatchDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  wake: Wake;
}

const LOOK_EVERY_MS = 2_000;
/** Each may carry a payload of 64 KiB. */
const BATCH = 200;
/** Where others have the rows of a whole batch locked. */
const LOCKED_MS = 200;

interface State extends WaitingWatchDeps {
  /** Runs whose row was refused. */
  rests: Rests;
}

export function createWaitingWatch(deps: WaitingWatchDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, rests: createRests({ clock, events, loop: 'waiting-watch' }) };
  return createLoop({ name: 'waiting-watch', clock, events, body: () => pass(state) });
}

async function pass(state: State): Promise<number> {
  const { database, events, lease, rests } = state;
  // After an outage, the waiting outcomes are written before the lease is valid again: such a run does not wait.
  if (!lease.isValid()) return LOOK_EVERY_MS;
  const ids = await database.run((db) => findExpired(db, { limit: BATCH, besides: rests.keys() }));
  let ended = 0;
  await inHalves(ids, {
    work: async (some) => void (ended += await end(state, some)),
    faultOf: batchFaultOf,
    wasSetAside: (id) => rests.wasSetAside(id),
    setAside: (id, error) => {
      rests.add(id);
      events.emit({ type: 'expiryRefused', runId: id, error: reasonOf(error) });
    },
  });
  if (ids.length < BATCH) return LOOK_EVERY_MS;
  return ended > 0 ? 0 : LOCKED_MS;
}

/** Answers how many have ended. */
async function end({ database, events, wake }: State, ids: readonly string[]): Promise<number> {
  const { changes, effects } = await database.transaction((tx) => endIfExpired(tx, ids));
  if (changes.length === 0) return 0;
  const ofStatus = (status: string) => changes.filter(({ to }) => to.status === status);
  const counts = { failed: ofStatus('failed').length, unknown: ofStatus('unknown').length };
  const skipped = ofStatus('skipped').length;
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'expired', count: skipped });
  if (skipped < changes.length) {
    const runIds = changes.filter(({ to }) => to.status !== 'skipped').map(({ to }) => to.id);
    events.emit({ type: 'waitingExpired', ...counts, runIds: runIds.slice(0, MAX_NAMED) });
  }
  wakeFor(wake, { effects, toAdmit: changes.some(({ from }) => from.limitId !== null) });
  return changes.length;
}

const MAX_NAMED = 10;
