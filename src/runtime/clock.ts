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

/**
 * The database's time between two statements: its last answer, carried forward on the monotonic clock. Starts, ends and
 * lateness are written in this time, so that instances with wrong clocks agree.
 */
export interface DatabaseClock {
  now(): Instant;
  /** A statement that was sent at `sentAt` (monotonic ms) and answered just now has read `databaseNow`. */
  sample(databaseNow: Instant, sentAt: number): void;
}

/** An answer that took longer says too little about the moment of the reading. */
const MAX_ROUND_TRIP_MS = 1000;

export function createDatabaseClock(clock: Clock): DatabaseClock {
  let offset: number | undefined;
  return {
    now: () => (offset === undefined ? clock.now() : Math.round(clock.monotonic() + offset)),
    sample: (databaseNow, sentAt) => {
      const answeredAt = clock.monotonic();
      if (offset !== undefined && answeredAt - sentAt > MAX_ROUND_TRIP_MS) return;
      offset = databaseNow - (sentAt + answeredAt) / 2;
    },
  };
}
