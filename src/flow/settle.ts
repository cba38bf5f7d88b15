/**
 * Guarantees: every outcome is written, or kept in memory until it can be; what the claim no longer covers is refused, except a 2xx.
 * Transaction: one statement for each 500 plain successes; one transaction for a batch of the others, which passes over rows that
 *   other transactions have locked. What is to follow from an end is part of its commit, as rows of `effects`.
 * If the process dies here: outcomes in memory are gone; their runs are still pending under this instance's claim.
 */
import type { ScopeShares } from '../core/access/scope.ts';
import type { AttemptSettlement } from '../core/runs/attempts/settle-attempt.ts';
import { withoutText } from '../core/runs/attempts/settlement.ts';
import { inHalves } from '../runtime/loop/batch.ts';
import type { ConfirmedCommits } from '../runtime/confirmed-commits.ts';
import { type Loop, type Turning, createLoop, turningOf } from '../runtime/loop/loop.ts';
import { reasonOf } from '../runtime/reason.ts';
import { type StarvationGuard, createStarvationGuard } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { batchFaultOf, isDataRefused, isLockedByOthers } from '../postgres/errors.ts';
import type { MeetingLocks } from '../store/runs/lock-and-save.ts';
import { type SettledRuns, settleLockedRuns } from '../store/runs/ends/settle-locked.ts';
import { settlePlainIfClaimed } from '../store/runs/ends/settle-plain.ts';
import { type EndedAttempt, MIN_WAIT_MS, SettleQueue, isLimited, waitAfter } from './settle-queue.ts';

interface SettleDeps extends LoopDeps {
  commits: Pick<ConfirmedCommits, 'note'>;
  wake: Wake;
  /** Attempts that may be under way at once. */
  concurrency: number;
  /** Where there are some, what follows from one's ends does not wait for many ends of another. */
  scopeShares?: ScopeShares;
}

export interface Settler extends Turning {
  add(ended: EndedAttempt): void;
  /** Tries at once to write what waits now; resolves when that is done or has failed for some passes. */
  flush(): Promise<void>;
}

/** Of plain successes in a pass. The next pass follows at once while so many are left. */
const MAX_PLAIN = 2_000;
/** For one statement or transaction. */
const MAX_BATCH = 500;
const IDLE_MS = 60_000;
/** The wait before rows that other transactions had locked are tried again. */
const PASSED_OVER_MS = 500;
const FLUSH_PASSES = 5;

interface State extends SettleDeps {
  queue: SettleQueue;
  guard: StarvationGuard;
  /** The one outcome that waits in line for its row, beside all others. */
  awaitingLock: EndedAttempt | null;
  /** Smaller after a transaction that failed: what is too much at once is tried with less. */
  maxLocking: number;
  /** At least so long lies between the last pass and the next. */
  waitMs: number;
  afterPass: (() => void)[];
}

export function createSettler(deps: SettleDeps): Settler {
  const state: State = {
    ...deps,
    queue: new SettleQueue(),
    guard: createStarvationGuard(),
    awaitingLock: null,
    maxLocking: MAX_BATCH,
    waitMs: MIN_WAIT_MS,
    afterPass: [],
  };
  const loop: Loop = createLoop({
    name: 'settle',
    clock: deps.clock,
    body: () => pass(state, () => loop.wake()),
    minMs: () => (state.queue.sizes.plain >= MAX_PLAIN ? 0 : state.waitMs),
    events: deps.events,
  });
  return {
    ...turningOf(loop),
    add: (ended) => {
      state.queue.add(ended);
      loop.wake();
    },
    flush: () => flush(state, loop),
  };
}

async function pass(state: State, wakeLoop: () => void): Promise<number> {
  const { queue } = state;
  try {
    const plain = queue.plain(MAX_PLAIN);
    let wereAwaited = (state.scopeShares ?? []).length > 0;
    for (let from = 0; from < plain.length; from += MAX_BATCH) {
      if (await settlePlain(state, plain.slice(from, from + MAX_BATCH))) wereAwaited = true;
    }
    state.waitMs = waitAfter({ count: plain.length, wereAwaited, slots: state.concurrency });
    const before = queue.sizes.locking;
    const batch = queue.locking(state.maxLocking).filter((ended) => ended !== state.awaitingLock);
    if (batch.length > 0) await settleLocking(state, batch, wakeLoop);
    const left = queue.sizes;
    if (left.plain > 0 || left.locking < before) return 0;
    return left.locking > 0 ? PASSED_OVER_MS : IDLE_MS;
  } finally {
    for (const resolve of state.afterPass.splice(0)) resolve();
  }
}

/** What it does not write, a transaction writes in the same pass. Answers whether something waited for one of these ends. */
async function settlePlain(state: State, batch: readonly EndedAttempt[]): Promise<boolean> {
  const { database, queue, events } = state;
  try {
    const { settled, effects } = await database.run((db) => settlePlainIfClaimed(db, batch.map(outcomeOf)));
    const toAdmit = batch.some(isLimited);
    wakeFor(state.wake, { effects, toAdmit });
    const written = batch.find(({ outcome }) => settled(outcome.runId))?.outcome;
    if (written) state.commits.note({ runId: written.runId, kind: 'succeeded', at: written.finishedAt });
    for (const ended of batch) {
      if (settled(ended.outcome.runId)) emitSettled(state, ended, { wasLost: false });
      else queue.lockFirst(ended);
    }
    return effects > 0 || toAdmit;
  } catch (error) {
    for (const ended of batch) queue.lockFirst(ended);
    if (isLockedByOthers(error)) events.emit({ type: 'batchHeldUp', loop: 'settle', count: batch.length });
    else if (!isDataRefused(error)) throw error;
    return false;
  }
}

async function settleLocking(state: State, batch: readonly EndedAttempt[], wakeLoop: () => void): Promise<void> {
  state.queue.putBack(batch);
  const passedOver: string[] = [];
  try {
    await inHalves(batch, {
      work: async (part) => {
        passedOver.push(...(await settleInTransaction(state, part, 'skipLocked')));
      },
      faultOf: batchFaultOf,
      // One that ran out of time stays in the queue, behind the others.
      setAside: (ended, error) =>
        isDataRefused(error)
          ? settleWithoutText(state, ended, error)
          : state.events.emit({ type: 'batchHeldUp', loop: 'settle', count: 1 }),
    });
    state.maxLocking = Math.min(MAX_BATCH, state.maxLocking * 2);
  } catch (error) {
    state.maxLocking = Math.max(1, Math.floor(state.maxLocking / 2));
    throw error;
  }
  const starving = state.guard.starving(passedOver, new Set());
  const next = batch.find(({ outcome }) => starving.has(outcome.runId));
  if (next && state.awaitingLock === null) void awaitLock(state, next).finally(wakeLoop);
}

/** Answers the ids of runs whose rows other transactions have locked. */
async function settleInTransaction(
  state: State,
  batch: readonly EndedAttempt[],
  meeting: MeetingLocks,
): Promise<ReadonlySet<string>> {
  const settled = await state.database.transaction((tx) => settleLockedRuns(tx, batch.map(outcomeOf), meeting));
  wakeFor(state.wake, { ...settled, toAdmit: batch.some(isLimited) });
  for (const ended of batch) emitOutcome(state, ended, settled);
  return settled.passedOver;
}

/** Waits in line for a row that another transaction has at every look. Where that fails it is tried again with the others. */
async function awaitLock(state: State, ended: EndedAttempt): Promise<void> {
  state.awaitingLock = ended;
  try {
    await settleInTransaction(state, [ended], 'wait');
  } catch {
    // It is still in the queue.
  } finally {
    state.awaitingLock = null;
  }
}

/** An outcome that the database refuses, such as for a text it cannot store, is written without its texts. */
async function settleWithoutText(state: State, ended: EndedAttempt, error: unknown): Promise<void> {
  const { runId } = ended.outcome;
  state.events.emit({ type: 'settlementRefused', runId, error: reasonOf(error) });
  const bare = { ...ended.outcome, settlement: withoutText(ended.outcome.settlement) };
  try {
    const settled = await state.database.transaction((tx) => settleLockedRuns(tx, [bare], 'skipLocked'));
    wakeFor(state.wake, { ...settled, toAdmit: isLimited(ended) });
    emitOutcome(state, ended, settled);
  } catch (refusedAgain) {
    if (!isDataRefused(refusedAgain)) throw refusedAgain;
    // Nothing is left to leave out: recovery finds the claim in the row, and the others go on.
    emitFenced(state, ended, { alreadyEnded: false });
  }
}

function outcomeOf({ outcome }: EndedAttempt): AttemptSettlement {
  return outcome;
}

/** Nothing, where its row was passed over: it stays in the queue. */
function emitOutcome(state: State, ended: EndedAttempt, { settled, fenced }: SettledRuns): void {
  const { runId } = ended.outcome;
  const written = settled.get(runId);
  if (written) emitSettled(state, ended, written);
  else if (fenced.has(runId)) emitFenced(state, ended, fenced.get(runId) ?? { alreadyEnded: false });
}

function emitSettled(state: State, ended: EndedAttempt, { wasLost }: { wasLost: boolean }): void {
  done(state, ended);
  const { runId, attempt, outcome, settlement, finishedAt } = ended.outcome;
  const { status, error, retryAt } = settlement;
  const { scheduleId, notifierId, firstClaimedAt } = ended.run;
  const goesOn = status === 'pending' || status === 'running';
  const durationMs = goesOn ? null : finishedAt - firstClaimedAt;
  const recovered = wasLost && outcome === 'accepted';
  const inDoubt = status === 'pending' && settlement.doubt !== null;
  const runSettlement = { status, error: error?.message ?? null, durationMs, retryAt, recovered, inDoubt };
  const ofRun = { runId, scheduleId, notifierId, attempt };
  state.events.emit({ type: 'runSettled', ...ofRun, settlement: runSettlement });
}

function emitFenced(state: State, ended: EndedAttempt, { alreadyEnded }: { alreadyEnded: boolean }): void {
  done(state, ended);
  const { runId, attempt, outcome, settlement } = ended.outcome;
  const { scheduleId } = ended.run;
  const answer = { outcome, statusCode: settlement.statusCode };
  state.events.emit({ type: 'settlementFenced', runId, scheduleId, attempt, ...answer, alreadyEnded });
}

function done({ queue }: State, ended: EndedAttempt): void {
  if (queue.remove(ended)) ended.onSettled();
}

async function flush({ queue, afterPass }: State, loop: Loop): Promise<void> {
  const before = queue.all();
  const isLeft = () => before.some((ended) => queue.has(ended));
  for (let passes = 0; isLeft() && passes < FLUSH_PASSES; passes += 1) {
    const passed = new Promise<void>((resolve) => afterPass.push(resolve));
    loop.retry();
    await passed;
  }
}
