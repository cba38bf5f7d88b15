import { onTestFinished, vi } from 'vitest';
import { type Clock, systemClock, type DatabaseClock, createDatabaseClock } from '../../src/runtime/clock.ts';

/** This machine's clock; time that a test does not wait for can be let pass. */
export function passingClock(): { clock: Clock; pass: (ms: number) => void } {
  let ahead = 0;
  const clock = { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + ahead };
  return { clock, pass: (ms) => void (ahead += ms) };
}

/** The same of the database's time, as an instance takes it. */
export function passingDatabaseClock(): { databaseClock: DatabaseClock; pass: (ms: number) => void } {
  const real = createDatabaseClock(systemClock);
  let ahead = 0;
  const databaseClock = { ...real, now: () => real.now() + ahead };
  return { databaseClock, pass: (ms) => void (ahead += ms) };
}

/**
 * The timers of the code under test stand still until this moves them: so an attempt runs out of time when a test has seen what it
 * waits for, and not on a slow machine before that. Sockets, and what Node itself waits for, go on.
 */
export function settableTimers(): { pass: (seconds: number) => void } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  return { pass: (seconds) => void vi.advanceTimersByTime(seconds * 1000) };
}
