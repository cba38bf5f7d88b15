/**
 * Guarantees: whatever is due by the database's clock is planned within one tick interval, and to the millisecond
 *   where nothing is in the way.
 * Transaction: none of its own; it drives stages 2 to 4.
 * If the process dies here: another instance's tick finds the same rows due.
 */
import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import type { DueSchedules } from '../store/schedules/fire-locks.ts';
import { FIRE_LOCK_BATCH } from './fire-lock.ts';
import type { Planned, Planner } from './plan.ts';

interface TickDeps {
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  tickIntervalMs: number;
  planner: Planner;
  takeFireLocks: (walking: readonly string[]) => Promise<DueSchedules>;
  recordIntents: (planned: Planned, now: number) => Promise<void>;
}

/** One pass locks a batch of what is due, plans it and records it; serial within an instance. */
export function createTick(deps: TickDeps): Loop {
  const { clock, databaseClock, events, tickIntervalMs, planner } = deps;

  async function tick(): Promise<number> {
    const startedAt = clock.monotonic();
    const due = await deps.takeFireLocks(planner.walking());
    const planned = await planner.round(due.locked, due.now);
    await deps.recordIntents(planned, due.now);
    events.emit({
      type: 'tickFinished',
      durationMs: clock.monotonic() - startedAt,
      locked: due.locked.length,
    });
    if (due.locked.length === FIRE_LOCK_BATCH || planner.walking().length > 0) return 0;
    // The statement saw what it locked where it stood before it was moved on.
    const movedTo = planned.planned.flatMap(({ plan }) => plan.nextFireAt ?? []);
    return untilNextDue(Math.min(due.nextDueAt ?? Infinity, ...movedTo));
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
