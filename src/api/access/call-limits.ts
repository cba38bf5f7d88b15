import { LRUCache } from 'lru-cache';
import type { Clock } from '../../runtime/clock.ts';

/** Limits how often each key may do something: one bucket for each key, which fills as time passes. */
export interface RateLimit {
  /** So much at once, 1 unless told. Zero: the key may go on now. Otherwise: the number of seconds after which it may try again. */
  take(key: string, amount?: number): number;
  /** What `take` would say, which takes nothing. */
  look(key: string): number;
}

interface RateLimitOptions {
  clock: Clock;
  /** The size of a bucket: how many at once. */
  burst: number;
  perSecond: number;
  /** How many keys are remembered. Beyond that, the limiter forgets the keys that were idle longest: they begin anew. */
  maxKeys: number;
}

export function createRateLimit({ clock, burst, perSecond, maxKeys }: RateLimitOptions): RateLimit {
  const intervalMs = 1000 / perSecond;
  /** When the bucket of a key will be full again. */
  const fullAt = new LRUCache<string, number>({ max: maxKeys });
  const lookAt = (key: string, amount: number) => {
    const now = clock.monotonic();
    const full = Math.max(fullAt.get(key) ?? now, now) + amount * intervalMs;
    return { full, waitSeconds: Math.max(0, Math.ceil((full - now - burst * intervalMs) / 1000)) };
  };
  return {
    take: (key, amount = 1) => {
      const { full, waitSeconds } = lookAt(key, amount);
      if (waitSeconds === 0) fullAt.set(key, full);
      return waitSeconds;
    },
    look: (key) => lookAt(key, 1).waitSeconds,
  };
}

/**
 * `prompt`: workers, callbacks and manual fires, which are short. `waits`: it may wait for work, and costs little meanwhile.
 * `slow`: it may take long, and goes one at a time. `usual`: all others.
 */
export type CallPace = 'prompt' | 'waits' | 'slow' | 'usual';

export interface CallsUnderWay {
  /** The function to call once when the call has ended; null: the caller has too many under way. */
  enter(key: string, pace: CallPace): (() => void) | null;
}

/** Of one caller, in one instance. A worker may have many runs, which end at the same moment. */
const MOST: Readonly<Record<Limited, number>> = { usual: 100, prompt: 500, waits: 1000 };

type Limited = Exclude<CallPace, 'slow'>;

export function createCallsUnderWay(most = MOST): CallsUnderWay {
  const counts = new Map<string, number>();
  return {
    enter: (caller, pace) => {
      const limited = pace === 'slow' ? 'usual' : pace;
      const key = `${limited} ${caller}`;
      const count = counts.get(key) ?? 0;
      if (count >= most[limited]) return null;
      counts.set(key, count + 1);
      return () => {
        const left = (counts.get(key) ?? 0) - 1;
        if (left > 0) counts.set(key, left);
        else counts.delete(key);
      };
    },
  };
}
