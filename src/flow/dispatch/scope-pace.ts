import { performance } from 'node:perf_hooks';
import type { Clock } from '../../runtime/clock.ts';
import type { LaneBook, LaneScope } from './lane.ts';

interface ScopePaceDeps {
  book: LaneBook;
  clock: Clock;
  /** Attempts under way at once. */
  total: number;
  /** Which part of the time since it was asked last the process had something to do: from 0 to 1. */
  busyShare: () => number;
  /** Calls back after so many ms: a scope that was held back may begin more. */
  later: (ms: number) => void;
}

/** With this many runs that wait for a slot, a scope holds up others by its mere number. */
const MANY_WAITING = 64;
/** So long after its last run, or after the last of its schedules was planned, a scope counts as at work. */
export const AT_WORK_MS = 5_000;
/** Attempts are counted over so many ms, and so many such windows lie between two looks at how busy the process is. */
const WINDOW_MS = 20;
const WINDOWS_PER_LOOK = 5;
const AHEAD_MS = 500;
/** Above it, everything that the process does comes late: also what it does for others. */
const MAX_BUSY = 0.2;
const LESS = 0.75;
const MORE = 1.15;
/** Attempts in a window, in parts of all slots: the fewest, and how many at first. */
const LEAST = 1 / 32;
const AT_FIRST = 1 / 16;

/**
 * How fast a scope with very many runs begins attempts while another scope, which has few, is at work too. Slots alone do not protect the
 * other one: with quick targets, few slots keep a process and its database busy, and each step of every fire waits. So the rate is found
 * by which the process has time left: more by a step while it has, less by a factor once it has not (as TCP's congestion avoidance does,
 * RFC 5681).
 */
export class ScopePace {
  readonly #deps: ScopePaceDeps;
  readonly #least: number;
  #allowed: number;
  #begun = 0;
  #windowBeganAt = -Infinity;
  #lookedAt = -Infinity;
  #heldBack = false;

  constructor(deps: ScopePaceDeps) {
    this.#deps = deps;
    this.#least = Math.max(1, deps.total * LEAST);
    this.#allowed = Math.max(1, deps.total * AT_FIRST);
  }

  /** Whether a waiting run of this scope may begin now. If not, `later` was called. */
  mayBegin(scope: LaneScope, now: number): boolean {
    if (!this.#isPaced(scope, now)) return true;
    if (now - this.#windowBeganAt >= WINDOW_MS) this.#beginWindow(now);
    if (this.#begun < this.#allowed) return true;
    this.#heldBack = true;
    this.#deps.later(this.#windowBeganAt + WINDOW_MS - now);
    return false;
  }

  began(): void {
    this.#begun += 1;
  }

  /**
   * How many more of its runs may be claimed ahead: while another scope is at work, no more than it may begin in half a second. None, until
   * it has begun half of them: a claim looks at all lanes of the scope, however few runs it takes.
   */
  freeOf(scope: LaneScope): number {
    if (!this.#isAnotherAtWork(scope, this.#deps.clock.monotonic())) return Infinity;
    const most = MANY_WAITING + Math.floor((this.#allowed * AHEAD_MS) / WINDOW_MS);
    return scope.waiting > most / 2 ? 0 : most - scope.waiting;
  }

  #isPaced(scope: LaneScope, now: number): boolean {
    return hasMany(scope) && this.#isAnotherAtWork(scope, now);
  }

  /** One that has few runs. */
  #isAnotherAtWork(scope: LaneScope, now: number): boolean {
    return this.#deps.book.scopes.some(
      (other) =>
        other !== scope && !hasMany(other) && (other.claims > 0 || now - other.lastTurnAt < AT_WORK_MS),
    );
  }

  #beginWindow(now: number): void {
    this.#windowBeganAt = now;
    this.#begun = 0;
    if (now - this.#lookedAt < WINDOWS_PER_LOOK * WINDOW_MS) return;
    const busy = this.#deps.busyShare();
    const wasLongAgo = now - this.#lookedAt > 2 * WINDOWS_PER_LOOK * WINDOW_MS;
    this.#lookedAt = now;
    if (wasLongAgo) return;
    if (busy > MAX_BUSY) this.#allowed = Math.max(this.#least, this.#allowed * LESS);
    else if (this.#heldBack) this.#allowed = Math.min(this.#deps.total, this.#allowed * MORE);
    this.#heldBack = false;
  }
}

/** Of the event loop of this process; null: no scopes share the instance. `start` is called when more may begin. */
export function createScopePace({
  start,
  ...deps
}: Pick<ScopePaceDeps, 'book' | 'clock' | 'total'> & { start: () => void }): ScopePace | null {
  if (deps.book.scopes.length === 1) return null;
  let before = performance.eventLoopUtilization();
  let timer: NodeJS.Timeout | undefined;
  return new ScopePace({
    ...deps,
    busyShare: () => {
      const { utilization } = performance.eventLoopUtilization(before);
      before = performance.eventLoopUtilization();
      return utilization;
    },
    later: (ms) => {
      timer ??= setTimeout(() => {
        timer = undefined;
        start();
      }, ms).unref();
    },
  });
}

/** Of runs that wait for a slot. */
export function hasMany({ waiting }: LaneScope): boolean {
  return waiting >= MANY_WAITING;
}
