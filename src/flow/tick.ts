/**
 * Guarantees: whatever is due by the database's clock is planned within one tick interval, and to the millisecond where nothing is in the
 *   way. One instance at a time works on a due schedule; this only saves work: `planned_through` and a unique index forbid a second run.
 * Transaction: one statement locks a batch; another one reads the fires that are not to be made, where a schedule has some.
 * If the process dies here: the locks are free once this instance is declared dead, or after their TTL, and another instance's tick
 *   finds the same rows due.
 */
import type { Instant } from '../core/instant.ts';
import type { Clock, DatabaseClock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import type { Database, LoopDeps } from '../postgres/database.ts';
import { type DueSchedules, lockDueSchedules } from '../store/schedules/fire-locks.ts';
import { skipsOf } from '../store/schedules/skips.ts';
import { type ScopeShares, REST, shareOf } from '../core/access/scope.ts';

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

export interface FireLockDeps extends LoopDeps {
  databaseClock: DatabaseClock;
  lease: Lease;
  lockTtlSeconds: number;
  planTurns: PlanTurns;
}

/** Large enough for few round trips at midnight, small enough that one batch does not keep other work waiting. */
export const FIRE_LOCK_BATCH = 500;

export async function takeFireLocks(deps: FireLockDeps, walking: readonly string[]): Promise<DueSchedules> {
  const { database, clock, databaseClock, events, lockTtlSeconds, planTurns } = deps;
  const { instanceId } = deps.lease;
  const scopes = planTurns.limits();
  const sentAt = clock.monotonic();
  const due = await database.run((db) =>
    lockDueSchedules(db, { instanceId, limit: FIRE_LOCK_BATCH, scopes, lockTtlSeconds, walking }),
  );
  databaseClock.sample(due.now, sentAt);
  const ids = due.locked.map(({ id }) => id);
  planTurns.locked(ids, due.isFull);
  const counts = { acquired: due.locked.length, expired: due.takenOver, contended: due.contended } as const;
  for (const outcome of ['acquired', 'expired', 'contended'] as const) {
    if (counts[outcome] > 0) events.emit({ type: 'fireLocks', outcome, count: counts[outcome] });
  }
  return due.locked.some(({ hasSkips }) => hasSkips) ? withSkips(database, due) : due;
}

/** Read after the locks were taken. A later request to skip clears the lock, so a plan that does not know it is not written. */
async function withSkips(database: Database, due: DueSchedules): Promise<DueSchedules> {
  const uids = due.locked.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
  const found = await database.run((db) => skipsOf(db, uids, due.now));
  const locked = due.locked.map((schedule) => {
    const skips = found.get(schedule.uid);
    return skips ? { ...schedule, skips } : schedule;
  });
  return { ...due, locked };
}

/** How many due schedules of one scope a batch may have. */
interface ScopeBatch {
  prefix: string;
  limit: number;
}

/** A batch is what the schedules of others wait for that come due meanwhile: so scopes with more due than that have this part of one. */
const PART = 1 / 4;

/**
 * How many schedules of each scope (FIRELOCK_SCOPES) are locked at once, while more are due than one batch takes. The oldest ones would be
 * those of one scope, perhaps for a long time.
 */
export class PlanTurns {
  readonly #shares: ScopeShares;
  readonly #batch: number;
  /** Scopes of which the last full batch had as many as it might. */
  #full: ReadonlySet<string> = new Set();

  constructor(shares: ScopeShares, batch: number) {
    this.#shares = shares.length === 0 ? [] : [...shares, REST];
    this.#batch = batch;
  }

  /** Null: the oldest ones, whosever they are. */
  limits(): ScopeBatch[] | null {
    return this.#full.size === 0 ? null : this.#shares.map(({ prefix }) => this.#turnOf(prefix));
  }

  /** Notes what was locked by these limits. */
  locked(ids: readonly string[], isFull: boolean): void {
    if (this.#shares.length === 0) return;
    const counts = Map.groupBy(isFull ? ids : [], (id) => shareOf(this.#shares, id).prefix);
    const full = [...counts].filter(([prefix, { length }]) => length >= this.#turnOf(prefix).limit);
    this.#full = new Set(full.map(([prefix]) => prefix));
  }

  #turnOf(prefix: string): ScopeBatch {
    const part = this.#full.has(prefix) ? PART / this.#full.size : 1 / this.#shares.length;
    return { prefix, limit: Math.ceil(this.#batch * part) };
  }
}
