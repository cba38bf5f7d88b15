/**
 * Guarantees: a run that waits for nothing goes on or ends, also where what was to follow from an end was deleted by another program;
 * runs that maintenance held go on after it, and those that were written while the database's clock was ahead within minutes; instances
 * that are long dead are forgotten.
 * Transaction: one for each kind of work.
 * If the process dies here: the next pass, on any instance, finds the same rows.
 */
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type PageSize, createPageSize } from '../runtime/loop/batch.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import {
  type EdgeCursor,
  effectsForOverlooked,
  findWaitingInVain,
  FIRST_EDGE,
  writeOverlapEffects,
} from '../store/effects/insert-effects.ts';
import { forgetLongDead } from '../store/instances/instances.ts';
import { releaseHeldRuns } from '../store/runs/runs-of-edits.ts';
import { bringBackPutOffs, bringBackRuns } from '../store/runs/written-ahead.ts';
import { abandonWaitingOfDeleted } from '../store/runs/ends/abandon-runs.ts';

interface BackstopDeps extends LoopDeps {
  intervalSeconds: number;
  wake: Wake;
}

/** The most runs, or open dependencies, that one transaction takes. */
const BATCH = 2_000;
const NEXT_BATCH_MS = 1_000;
/** Such a look reads all open runs. */
const AHEAD_EVERY_MS = 300_000;

interface State extends BackstopDeps {
  sizes: Record<'deleted' | 'waiting' | 'dependents' | 'held' | 'ahead', PageSize>;
  lookedThrough: EdgeCursor;
  /** Monotonic: of the next look for runs that were written while the database's clock was ahead. */
  aheadAt: number;
}

/** Finds by rows the work that should have been done at once. Separate from recovery, so that take-overs do not wait for it. */
export function createBackstop(deps: BackstopDeps): Loop {
  const { clock, events } = deps;
  const size = () => createPageSize(BATCH);
  const sizes = { deleted: size(), waiting: size(), dependents: size(), held: size(), ahead: size() };
  const state: State = { ...deps, sizes, lookedThrough: FIRST_EDGE, aheadAt: -Infinity };
  return createLoop({ name: 'backstop', clock, body: () => pass(state), events });
}

async function pass(state: State): Promise<number> {
  const { database, intervalSeconds } = state;
  // Each by itself: a failure of one must not stop the others.
  const [waiting, dependents, held, ahead, ...others] = await Promise.allSettled([
    releaseWaiting(state),
    releaseDependents(state),
    releaseHeld(state),
    bringBack(state),
    database.run(forgetLongDead),
  ]);
  const failed = [waiting, dependents, held, ahead, ...others].find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  const isMore = [waiting, held, ahead].some((one) => one.status === 'fulfilled' && one.value);
  return isMore ? NEXT_BATCH_MS : intervalSeconds * 1000;
}

/**
 * Runs that wait for an active run that does not exist, or for a schedule that is gone. Answers whether there may be
 * more of them.
 */
async function releaseWaiting({ database, events, wake, sizes }: State): Promise<boolean> {
  const { abandoned, effects } = await sizes.deleted.fit((limit) =>
    database.transaction((tx) => abandonWaitingOfDeleted(tx, limit)),
  );
  if (abandoned > 0) events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: null, count: abandoned });
  const { toJudge, written, isMore } = await sizes.waiting.fit(async (limit) => {
    const found = await database.run((db) => findWaitingInVain(db, limit));
    const effectsOfFound = found.length > 0 ? await database.transaction((tx) => writeOverlapEffects(tx, found)) : 0;
    return { toJudge: found.length, written: effectsOfFound, isMore: found.length === limit };
  });
  if (toJudge > 0) events.emit({ type: 'waitingReleased', count: toJudge });
  wakeFor(wake, { effects: effects + written, toAdmit: abandoned > 0 });
  return isMore;
}

/** Runs that wait for a dependency whose end was never counted. */
async function releaseDependents(state: State): Promise<void> {
  const { database, events, wake } = state;
  const { found, next } = await state.sizes.dependents.fit((limit) =>
    database.transaction((tx) => effectsForOverlooked(tx, state.lookedThrough, limit)),
  );
  state.lookedThrough = next ?? FIRST_EDGE;
  if (found > 0) events.emit({ type: 'waitingReleased', count: found });
  wakeFor(wake, { effects: found });
}

/** Runs that an edit recorded during maintenance, which is over now. Answers whether there may be more of them. */
async function releaseHeld({ database, events, wake, sizes }: State): Promise<boolean> {
  const { found, released, toPull, effects, limit } = await sizes.held.fit(async (most) => ({
    ...(await database.transaction((tx) => releaseHeldRuns(tx, most))),
    limit: most,
  }));
  if (released > 0) events.emit({ type: 'heldRunsReleased', count: released });
  wakeFor(wake, { effects, toClaim: released, toPull });
  return found === limit;
}

/** Answers whether there may be more of them. */
async function bringBack(state: State): Promise<boolean> {
  const { database, clock, events, wake, sizes } = state;
  if (clock.monotonic() < state.aheadAt) return false;
  const { count, isMore } = await sizes.ahead.fit(async (limit) => {
    const found = await database.run((db) => bringBackRuns(db, limit));
    const putOff = await database.run((db) => bringBackPutOffs(db, limit));
    return { count: found, isMore: Math.max(found, putOff) === limit };
  });
  if (!isMore) state.aheadAt = clock.monotonic() + AHEAD_EVERY_MS;
  if (count > 0) events.emit({ type: 'runsBroughtBack', count });
  wakeFor(wake, { toClaim: count, toPull: count > 0, toAdmit: count > 0 });
  return isMore;
}
