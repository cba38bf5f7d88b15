import type { Clock } from '../clock.ts';

/** Keys of rows that were set aside for a while: a look for work leaves them out, so that they hide none of those behind them. */
export interface Rests {
  /** Those that still rest. */
  keys(): string[];
  add(key: string): void;
}

/** `ms`: how long each rests. It is in memory only: another process finds out by itself. */
export function createRests(clock: Pick<Clock, 'monotonic'>, ms: number): Rests {
  const untils = new Map<string, number>();
  return {
    keys: () => {
      const now = clock.monotonic();
      for (const [key, until] of untils) if (until <= now) untils.delete(key);
      return [...untils.keys()];
    },
    add: (key) => void untils.set(key, clock.monotonic() + ms),
  };
}
