import { LRUCache } from 'lru-cache';
import type { Clock } from '../../runtime/clock.ts';

/** How often each of many keys may do something: a bucket for each, which fills as time passes. */
interface RateLimit {
  /** Zero: it may now. Otherwise it may not, and this is after how many seconds to try again. */
  take(key: string): number;
}

interface RateLimitOptions {
  clock: Clock;
  /** So often at once. */
  burst: number;
  perSecond: number;
  /** So many keys are remembered. Of more, those are forgotten that did nothing for longest: they begin anew. */
  maxKeys: number;
}

export function createRateLimit({ clock, burst, perSecond, maxKeys }: RateLimitOptions): RateLimit {
  const intervalMs = 1000 / perSecond;
  /** When the bucket of a key will be full again. */
  const fullAt = new LRUCache<string, number>({ max: maxKeys });
  return {
    take: (key) => {
      const now = clock.monotonic();
      const full = Math.max(fullAt.get(key) ?? now, now);
      const waitMs = full + intervalMs - now - burst * intervalMs;
      if (waitMs > 0) return Math.ceil(waitMs / 1000);
      fullAt.set(key, full + intervalMs);
      return 0;
    },
  };
}
