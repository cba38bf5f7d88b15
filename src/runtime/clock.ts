import type { Instant } from '../core/instant.ts';

/** The only place that reads this machine's clocks. The database's clock decides what is due, never this one. */
export interface Clock {
  /** This machine's wall clock; it can be set. */
  now(): Instant;
  /** Milliseconds that only go forward, from an arbitrary start. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
