import { onTestFinished, vi } from 'vitest';

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
