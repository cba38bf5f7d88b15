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

/** Keys of rows that other transactions have locked: a look leaves them out for a moment, so that they hide none of those behind them. */
export interface Passed {
  keys(): string[];
  add(keys: Iterable<string>): void;
}

export function createPassed(clock: Pick<Clock, 'monotonic'>, ms: number): Passed {
  const passed = new Map<string, number>();
  return {
    keys: () => {
      const now = clock.monotonic();
      for (const [key, until] of passed) if (until <= now) passed.delete(key);
      return [...passed.keys()];
    },
    add: (keys) => {
      const until = clock.monotonic() + ms;
      for (const key of keys) passed.set(key, until);
    },
  };
}

/**
 * Rows that other transactions have locked are passed over, so that they hold up no other. A row that is passed over at every look
 * starves, since each time a new transaction may have it. The caller must wait for such a row.
 */
export interface StarvationGuard {
  /** Keys of `found` that are not `done`, and were so at this look and at the ones right before it. */
  starving(found: readonly string[], done: ReadonlySet<string>): ReadonlySet<string>;
}

const LOOKS = 3;

export function createStarvationGuard(): StarvationGuard {
  let looks = new Map<string, number>();
  return {
    starving: (found, done) => {
      const left = found.filter((key) => !done.has(key));
      looks = new Map(left.map((key) => [key, (looks.get(key) ?? 0) + 1]));
      return new Set(left.filter((key) => (looks.get(key) ?? 0) >= LOOKS));
    },
  };
}
