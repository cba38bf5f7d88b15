/**
 * Guarantees: every outcome is written, or kept in memory until it can be; what the claim no longer covers is refused, except a 2xx.
 * Transaction: one statement for all that ended since the last one.
 * If the process dies here: outcomes in memory are gone; their runs are still pending under this instance's claim.
 */
import type { Instant } from '../core/instant.ts';
import type { Settlement } from '../core/settlement.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Turning, createLoop } from '../runtime/loop.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Database } from '../store/database.ts';
import { isDataRefused } from '../store/errors.ts';
import {
  type AttemptSettlement,
  type Settled,
  settleAgainIfClaimed,
  settleRunsIfClaimed,
} from '../store/settlements.ts';

export interface SettleDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
}

/** An attempt that ended, and what is told of it once it is written. */
export interface EndedAttempt {
  outcome: AttemptSettlement;
  scheduleId: string;
  firstClaimedAt: Instant;
  /** Called once, when the outcome is written or refused for good: its claim is no longer held. */
  onSettled: () => void;
}

export interface Settler extends Turning {
  add(ended: EndedAttempt): void;
  /** Resolves when nothing waits any more, or could not be written once again. */
  flush(): Promise<void>;
}

const LARGEST_BATCH = 500;
const IDLE_MS = 60_000;

export function createSettler(deps: SettleDeps): Settler {
  const { database, clock, events } = deps;
  /** In the order in which they ended. */
  const waiting = new Set<EndedAttempt>();
  /** The last statement's fate is unknown: it may have settled what is sent again now. */
  let repeated = false;

  const loop = createLoop({
    name: 'settle',
    clock,
    body: pass,
    events,
  });
  const onFlushed: (() => void)[] = [];

  async function pass(): Promise<number> {
    let failed = true;
    try {
      if (waiting.size > 0) await settle([...waiting.values().take(LARGEST_BATCH)].sort(byRun));
      failed = false;
      return waiting.size > 0 ? 0 : IDLE_MS;
    } finally {
      if (failed || waiting.size === 0) for (const resolve of onFlushed.splice(0)) resolve();
    }
  }

  async function settle(batch: readonly EndedAttempt[]): Promise<void> {
    try {
      await write(batch, (ended) => ended.outcome);
    } catch (error) {
      if (!isDataRefused(error)) throw error;
      await settleApart(batch, error);
    }
  }

  async function write(
    batch: readonly EndedAttempt[],
    asWritten: (ended: EndedAttempt) => AttemptSettlement,
  ): Promise<void> {
    try {
      const rows = batch.map(asWritten);
      const settled: Settled = repeated
        ? await database.transaction((tx) => settleAgainIfClaimed(tx, rows))
        : await database.run((db) => settleRunsIfClaimed(db, rows));
      repeated = false;
      for (const ended of batch) tell(ended, settled.get(ended.outcome.runId));
    } catch (error) {
      repeated = true;
      throw error;
    }
  }

  /** A row that the database refuses must not hold up the others: halve until it stands alone, then drop its body. */
  async function settleApart(batch: readonly EndedAttempt[], error: unknown): Promise<void> {
    const [only, ...others] = batch;
    if (!only) return;
    if (others.length > 0) {
      const half = Math.ceil(batch.length / 2);
      await settle(batch.slice(0, half));
      await settle(batch.slice(half));
      return;
    }
    events.emit({ type: 'settlementRefused', runId: only.outcome.runId, error: reasonOf(error) });
    try {
      await write(batch, ({ outcome }) => ({ ...outcome, settlement: withoutText(outcome.settlement) }));
    } catch (again) {
      if (!isDataRefused(again)) throw again;
      // Nothing is left to leave out: the claim stays in the row, to be found there, and the others go on.
      tell(only, undefined);
    }
  }

  function tell(ended: EndedAttempt, written: { wasLost: boolean } | undefined): void {
    const { runId, attempt, settlement, finishedAt } = ended.outcome;
    waiting.delete(ended);
    ended.onSettled();
    if (!written) {
      events.emit({ type: 'settlementFenced', runId, attempt });
      return;
    }
    const { status, error, retryAt } = settlement;
    const durationMs = status === 'pending' ? null : finishedAt - ended.firstClaimedAt;
    const recovered = written.wasLost && ended.outcome.outcome === 'accepted';
    const told = { status, error: error?.message ?? null, durationMs, retryAt, recovered };
    events.emit({ type: 'runSettled', runId, scheduleId: ended.scheduleId, attempt, settlement: told });
  }

  return {
    name: 'settle',
    start: () => loop.start(),
    inPassMs: () => loop.inPassMs(),
    passes: () => loop.passes(),
    stop: () => loop.stop(),
    add: (ended) => {
      waiting.add(ended);
      loop.wake();
    },
    flush: () =>
      new Promise((resolve) => {
        if (waiting.size === 0) {
          resolve();
          return;
        }
        onFlushed.push(resolve);
        loop.retry();
      }),
  };
}

function withoutText(settlement: Settlement): Settlement {
  return { ...settlement, body: null, executionId: null, error: null };
}

function byRun({ outcome: a }: EndedAttempt, { outcome: b }: EndedAttempt): number {
  return a.scheduledFor - b.scheduledFor || (a.runId < b.runId ? -1 : 1);
}
