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
