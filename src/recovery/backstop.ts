/**
 * Guarantees: a run that waits for nothing goes on or ends, also where what was to follow from an end was deleted by another program;
 * runs that maintenance held go on after it; instances that are long dead are forgotten.
 * Transaction: one for each kind of work.
 * If the process dies here: the next pass, on any instance, finds the same rows.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import { writeOverlapEffects } from '../store/effects/insert-effects.ts';
import { type EdgeCursor, FIRST_EDGE, effectsForOverlooked } from '../store/effects/overlooked.ts';
import { forgetLongDead } from '../store/instances/instances.ts';
import { releaseHeldRuns } from '../store/maintenance/held-runs.ts';
import { abandonWaitingOfDeleted } from '../store/runs/ends/abandon-runs.ts';
import { findWaitingInVain } from '../store/runs/waiting-in-vain.ts';

interface BackstopDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  intervalSeconds: number;
  wake: Wake;
}

const BATCH = 2_000;
const NEXT_BATCH_MS = 1_000;
/** How many open dependencies one pass reads. */
const EDGES = 2_000;

interface State extends BackstopDeps {
  lookedThrough: EdgeCursor;
}

/** Finds by rows the work that should have been done at once. Separate from recovery, so that take-overs do not wait for it. */
export function createBackstop(deps: BackstopDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, lookedThrough: FIRST_EDGE };
  return createLoop({ name: 'backstop', clock, body: () => pass(state), events });
}

async function pass(state: State): Promise<number> {
  const { database, intervalSeconds } = state;
  // Each by itself: a failure of one must not stop the others.
  const [waiting, dependents, held, ...others] = await Promise.allSettled([
    releaseWaiting(state),
    releaseDependents(state),
    releaseHeld(state),
    database.run(forgetLongDead),
  ]);
  const failed = [waiting, dependents, held, ...others].find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  const isMore = [waiting, held].some((one) => one.status === 'fulfilled' && one.value);
  return isMore ? NEXT_BATCH_MS : intervalSeconds * 1000;
}

/**
 * Runs that wait for an active run that does not exist, or for a schedule that is gone. Answers whether there may be
 * more of them.
 */
async function releaseWaiting({ database, events, wake }: State): Promise<boolean> {
  const { abandoned, effects } = await database.transaction((tx) => abandonWaitingOfDeleted(tx, BATCH));
  if (abandoned > 0)
    events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: null, count: abandoned });
  const toJudge = await database.run((db) => findWaitingInVain(db, BATCH));
  if (toJudge.length > 0) events.emit({ type: 'waitingReleased', count: toJudge.length });
  const written =
    toJudge.length > 0 ? await database.transaction((tx) => writeOverlapEffects(tx, toJudge)) : 0;
  wakeFor(wake, { effects: effects + written, toAdmit: abandoned > 0 });
  return toJudge.length === BATCH;
}

/** Runs that wait for a dependency whose end was never counted. */
async function releaseDependents(state: State): Promise<void> {
  const { database, events, wake } = state;
  const { found, next } = await database.transaction((tx) =>
    effectsForOverlooked(tx, state.lookedThrough, EDGES),
  );
  state.lookedThrough = next ?? FIRST_EDGE;
  if (found > 0) events.emit({ type: 'waitingReleased', count: found });
  wakeFor(wake, { effects: found });
}

/** Runs that an edit recorded during maintenance, which is over now. Answers whether there may be more of them. */
async function releaseHeld({ database, events, wake }: State): Promise<boolean> {
  const { found, released, toPull, effects } = await database.transaction((tx) => releaseHeldRuns(tx, BATCH));
  if (released > 0) events.emit({ type: 'heldRunsReleased', count: released });
  wakeFor(wake, { effects, toClaim: released, toPull });
  return found === BATCH;
}
