/**
 * Guarantees: a timing that many schedules share, or that is planned by again and again, is read once.
 * Transaction: none.
 * If the process dies here: nothing is lost but what is read again.
 */
import { LRUCache } from 'lru-cache';
import type { Timing } from '../core/schedules/schedule.ts';
import { readTiming } from '../core/schedules/stored-definition.ts';

/** Many schedules share few timings. One with 2,000 dates has 50,000 characters. */
const read = new LRUCache<string, Timing>({
  max: 10_000,
  maxSize: 20_000_000,
  sizeCalculation: (_timing, text) => text.length,
});

/** @throws Error where it cannot be planned by */
export function timingOf(text: string): Timing {
  const known = read.get(text);
  if (known) return known;
  const timing = readTiming(text);
  read.set(text, timing);
  return timing;
}
