import type { Instant } from '../core/instant.ts';

/** The only place that reads this machine's clocks. What is due is decided by the database's clock, never by this one. */
export interface Clock {
  /** This machine's wall clock; may step. */
  now(): Instant;
  /** Milliseconds that only ever go forward, from an arbitrary start. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
