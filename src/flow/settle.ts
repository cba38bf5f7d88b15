/**
 * Guarantees: every outcome is written, or kept in memory until it can be; what the claim no longer covers is refused, except a 2xx.
 * Transaction: one statement for all that ended since the last one; one transaction for those that others depend on, which also
 *   releases these, and for a batch with a row that somebody holds, which passes that one over.
 * If the process dies here: outcomes in memory are gone; their runs are still pending under this instance's claim.
 */
import type { Settlement } from '../core/settlement.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Turning, createLoop, turningOf } from '../runtime/loop.ts';
import { createPatience } from '../runtime/patience.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { ClaimedRun } from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import { isDataRefused, isLockedByOthers } from '../store/errors.ts';
import type { Aftermath } from '../store/followers.ts';
import {
  type AttemptSettlement,
  type SettledInTransaction,
  settleIfClaimedAndWithoutDependents,
  settleInTransactionIfClaimed,
} from '../store/settlements.ts';

export interface SettleDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  /** Sees to what ends brought about. */
  followUp: (aftermath: Aftermath) => void;
  /** A target says that it is gone, for good. */
  onGone: (run: SettledRun) => void;
}

const GONE = 410;

/** Whether others depend on it is what was known at its claim; the statement sees who came since. */
export type SettledRun = Pick<
  ClaimedRun,
  'id' | 'scheduleId' | 'scheduleUid' | 'scheduleVersion' | 'firstClaimedAt' | 'hasDependents'
>;

/** An attempt that ended, and what is told of it once it is written. */
export interface EndedAttempt {
  outcome: AttemptSettlement;
  run: SettledRun;
  /** Called once, when the outcome is written or refused for good: its claim is no longer held. */
  onSettled: () => void;
}

export interface Settler extends Turning {
  add(ended: EndedAttempt): void;
  /** Tries at once to write what waits now; resolves when that is done or has failed for some passes. */
  flush(): Promise<void>;
}

const LARGEST_BATCH = 500;
const IDLE_MS = 60_000;
/** A statement costs as much as twenty of its rows; a run that ends alone does not wait. */
const LEAST_MS = 15;
/** Where many end, many more are about to. */
const LEAST_MS_IF_MANY = 40;
const MANY = 100;
/** Before rows that others hold are tried again. */
const PASSED_OVER_MS = 500;
const FLUSH_PASSES = 5;

export function createSettler(deps: SettleDeps): Settler {
  const { database, clock, events } = deps;
  /** In the order in which they ended. */
  const waiting = new Set<EndedAttempt>();
  /**
   * Those that take a transaction: others depend on them, or their statement did not settle them (somebody holds one of its rows,
   * say), or was not answered and may have been committed. The longest untried first.
   */
  const careful = new Set<EndedAttempt>();
  const patience = createPatience();
  /** Of those, the one that stands in line for its row, beside all others. */
  let inLine: EndedAttempt | null = null;
  let largestCareful = LARGEST_BATCH;
  let afterPass: (() => void)[] = [];
  /** Ended when the last pass began. */
  let found = 0;

  const loop = createLoop({
    name: 'settle',
    clock,
    body: pass,
    leastMs: () => (waiting.size >= LARGEST_BATCH ? 0 : found >= MANY ? LEAST_MS_IF_MANY : LEAST_MS),
    events,
  });

  async function pass(): Promise<number> {
    found = waiting.size;
    try {
      if (waiting.size > 0) await settle(batchOf(waiting, LARGEST_BATCH));
      const before = careful.size;
      if (before > 0) await settleCarefully(batchOf(careful, largestCareful).filter((one) => one !== inLine));
      if (waiting.size > 0 || careful.size < before) return 0;
      return careful.size > 0 ? PASSED_OVER_MS : IDLE_MS;
    } finally {
      const told = afterPass;
      afterPass = [];
      for (const resolve of told) resolve();
    }
  }

  async function settle(batch: readonly EndedAttempt[]): Promise<void> {
    const { left, failure } = await settleOnce(batch);
    if (failure && isDataRefused(failure.error)) {
      await settleApart(left, failure.error, settle);
      return;
    }
    for (const ended of left) beCareful(ended);
    if (!failure) return;
    if (!isLockedByOthers(failure.error)) throw failure.error;
    events.emit({ type: 'batchHeldUp', loop: 'settle', count: left.length });
  }

  /** Answers what it did not settle, and what went wrong if something did. */
  async function settleOnce(
    batch: readonly EndedAttempt[],
  ): Promise<{ left: readonly EndedAttempt[]; failure: { error: unknown } | null }> {
    try {
      const settled = await database.run((db) =>
        settleIfClaimedAndWithoutDependents(db, batch.map(outcomeOf)),
      );
      deps.followUp(settled.aftermath);
      const left = batch.filter(({ outcome }) => !settled.runs.has(outcome.runId));
      for (const ended of batch) {
        const written = settled.runs.get(ended.outcome.runId);
        if (written) tellSettled(ended, written);
      }
      return { left, failure: settled.failure };
    } catch (error) {
      return { left: batch, failure: { error } };
    }
  }

  function beCareful(ended: EndedAttempt): void {
    waiting.delete(ended);
    careful.add(ended);
  }

  async function settleCarefully(batch: readonly EndedAttempt[]): Promise<void> {
    if (batch.length === 0) return;
    // Behind the others, whatever becomes of it: one row that nobody lets go of must not keep the rest from being tried.
    for (const ended of batch) careful.delete(ended);
    for (const ended of batch) careful.add(ended);
    try {
      const settled = await database.transaction((tx) =>
        settleInTransactionIfClaimed(tx, batch.map(outcomeOf)),
      );
      deps.followUp(settled.aftermath);
      largestCareful = Math.min(LARGEST_BATCH, largestCareful * 2);
      for (const ended of batch) if (!settled.passedOver.has(ended.outcome.runId)) tell(ended, settled);
      const over = patience.over([...settled.passedOver], new Set());
      const next = batch.find(({ outcome }) => over.has(outcome.runId));
      if (next && inLine === null) void standInLine(next);
    } catch (error) {
      if (!isDataRefused(error)) {
        largestCareful = Math.max(1, Math.floor(largestCareful / 2));
        throw error;
      }
      await settleApart(batch, error, settleCarefully);
    }
  }

  /** Somebody always has its row locked. */
  async function standInLine(ended: EndedAttempt): Promise<void> {
    inLine = ended;
    try {
      const settled = await database.transaction((tx) =>
        settleInTransactionIfClaimed(tx, [ended.outcome], { wait: true }),
      );
      deps.followUp(settled.aftermath);
      tell(ended, settled);
    } catch {
      // It is tried again with the others, and told of if that fails.
    } finally {
      inLine = null;
      loop.wake();
    }
  }

  /** A row that cannot be written must not hold up the others: halve until it stands alone, then drop its body. */
  async function settleApart(
    batch: readonly EndedAttempt[],
    error: unknown,
    again: (batch: readonly EndedAttempt[]) => Promise<void>,
  ): Promise<void> {
    const [only, ...others] = batch;
    if (!only) return;
    if (others.length > 0) {
      const half = Math.ceil(batch.length / 2);
      await again(batch.slice(0, half));
      await again(batch.slice(half));
      return;
    }
    const { runId } = only.outcome;
    events.emit({ type: 'settlementRefused', runId, error: reasonOf(error) });
    try {
      const bare = { ...only.outcome, settlement: withoutText(only.outcome.settlement) };
      const settled = await database.transaction((tx) => settleInTransactionIfClaimed(tx, [bare]));
      deps.followUp(settled.aftermath);
      if (settled.passedOver.has(runId)) beCareful(only);
      else tell(only, settled);
    } catch (refusedAgain) {
      if (!isDataRefused(refusedAgain)) throw refusedAgain;
      // Nothing is left to leave out: the claim stays in the row, to be found there, and the others go on.
      tell(only, null);
    }
  }

  /** Null: it could not be written. */
  function tell(ended: EndedAttempt, settled: SettledInTransaction | null): void {
    const { runId, attempt, outcome, settlement } = ended.outcome;
    const written = settled?.runs.get(runId);
    if (written) {
      tellSettled(ended, written);
      return;
    }
    done(ended);
    const { scheduleId } = ended.run;
    const { statusCode } = settlement;
    const alreadyEnded = settled?.ended.has(runId) ?? false;
    events.emit({ type: 'settlementFenced', runId, scheduleId, attempt, outcome, statusCode, alreadyEnded });
  }

  function tellSettled(ended: EndedAttempt, { wasLost }: { wasLost: boolean }): void {
    done(ended);
    const { runId, attempt, outcome, settlement, finishedAt } = ended.outcome;
    const { status, error, retryAt, statusCode } = settlement;
    const { scheduleId } = ended.run;
    const goesOn = status === 'pending' || status === 'running';
    const durationMs = goesOn ? null : finishedAt - ended.run.firstClaimedAt;
    const recovered = wasLost && outcome === 'accepted';
    const inDoubt = status === 'pending' && settlement.doubt !== null;
    const told = { status, error: error?.message ?? null, durationMs, retryAt, recovered, inDoubt };
    events.emit({ type: 'runSettled', runId, scheduleId, attempt, settlement: told });
    if (outcome === 'rejected' && statusCode === GONE) deps.onGone(ended.run);
  }

  function done(ended: EndedAttempt): void {
    waiting.delete(ended);
    careful.delete(ended);
    ended.onSettled();
  }

  return {
    ...turningOf(loop),
    add: (ended) => {
      (ended.run.hasDependents ? careful : waiting).add(ended);
      loop.wake();
    },
    flush: async () => {
      const before = [...waiting, ...careful];
      const isLeft = () => before.some((ended) => waiting.has(ended) || careful.has(ended));
      for (let passes = 0; isLeft() && passes < FLUSH_PASSES; passes += 1) {
        const passed = new Promise<void>((resolve) => afterPass.push(resolve));
        loop.retry();
        await passed;
      }
    },
  };
}

function outcomeOf(ended: EndedAttempt): AttemptSettlement {
  return ended.outcome;
}

/** No run twice: a statement can write a row once. */
function batchOf(from: ReadonlySet<EndedAttempt>, limit: number): EndedAttempt[] {
  const byRunId = new Map<string, EndedAttempt>();
  for (const ended of from) {
    if (byRunId.size >= limit) break;
    if (!byRunId.has(ended.outcome.runId)) byRunId.set(ended.outcome.runId, ended);
  }
  return [...byRunId.values()].sort(byRun);
}

function withoutText(settlement: Settlement): Settlement {
  return { ...settlement, body: null, executionId: null, error: null };
}

function byRun({ outcome: a }: EndedAttempt, { outcome: b }: EndedAttempt): number {
  return a.scheduledFor - b.scheduledFor || (a.runId < b.runId ? -1 : 1);
}
