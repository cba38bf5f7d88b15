import type { Clock } from '../clock.ts';
import type { EventBus } from '../event-bus.ts';

/**
 * Keys of rows that a loop has set aside: it leaves them out for a while, so that they hide none of those behind them,
 * and then tries them apart from the others, so that they take no batch along.
 */
export interface Rests {
  /** Those that still rest. */
  keys(): string[];
  /** A first rest is a minute; each following one is twice as long, up to 16 minutes. */
  add(key: string): void;
  /** Whether it has rested, and it is not long since. */
  wasSetAside(key: string): boolean;
}

interface RestsOptions {
  clock: Pick<Clock, 'monotonic'>;
  /** Learns how many keys of the loop rest, whenever that changes. */
  events: Pick<EventBus, 'emit'>;
  loop: string;
}

const FIRST_MS = 60_000;
const LONGEST_MS = 16 * FIRST_MS;

/** They are in memory only: another process finds out by itself. */
export function createRests({ clock, events, loop }: RestsOptions): Rests {
  const rests = new Map<string, { ms: number; until: number }>();
  let told = 0;

  function resting(): string[] {
    const now = clock.monotonic();
    // One that has gone as long without a fault as it had rested counts as any other.
    for (const [key, { ms, until }] of rests) if (until + ms <= now) rests.delete(key);
    const keys = [...rests].flatMap(([key, { until }]) => (until > now ? [key] : []));
    if (keys.length !== told) events.emit({ type: 'rowsSetAside', loop, count: keys.length });
    told = keys.length;
    return keys;
  }

  return {
    keys: resting,
    add: (key) => {
      const before = rests.get(key);
      const ms = before ? Math.min(before.ms * 2, LONGEST_MS) : FIRST_MS;
      rests.set(key, { ms, until: clock.monotonic() + ms });
      resting();
    },
    wasSetAside: (key) => rests.has(key),
  };
}
