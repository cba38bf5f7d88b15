/**
 * Guarantees: whatever is due by the database's clock is planned within one tick interval, and to the millisecond
 *   where nothing is in the way.
 * Transaction: none of its own; it drives stages 2 to 4 (fireDue in pipeline.ts).
 * If the process dies here: another instance's tick finds the same rows due.
 */
import type { Instant } from '../core/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';

/** What one round has done. */
export interface FiredRound {
  /** Schedules that it locked. */
  locked: number;
  /** More is due, or being planned. */
  isMore: boolean;
  /** When the next schedule is due, as far as is known; null: none is. */
  nextDueAt: Instant | null;
}

interface TickDeps {
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  tickIntervalMs: number;
  /** Locks a batch of due schedules, plans it and records it. */
  fireDue: () => Promise<FiredRound>;
}

/** One pass fires one batch; serial within an instance. */
export function createTick(deps: TickDeps): Loop {
  const { clock, databaseClock, events, tickIntervalMs, fireDue } = deps;

  async function tick(): Promise<number> {
    const startedAt = clock.monotonic();
    const { locked, isMore, nextDueAt } = await fireDue();
    events.emit({ type: 'tickFinished', durationMs: clock.monotonic() - startedAt, locked });
    return isMore ? 0 : untilNextDue(nextDueAt ?? Infinity);
  }

  function untilNextDue(nextDueAt: number): number {
    return Math.min(tickIntervalMs, Math.max(1, nextDueAt - databaseClock.now()));
  }

  return createLoop({
    name: 'tick',
    clock,
    body: tick,
    events,
  });
}
