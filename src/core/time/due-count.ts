import type { Instant } from '../instant.ts';
import { following } from './catch-up.ts';
import type { CronTimes } from './cron.ts';

/** What is due of a schedule, without a list of it: a week of seconds is 604,800 of them. */
export interface DueCount {
  first: Instant;
  newest: Instant;
  /** Both included; at least 1. */
  count: number;
  /** The first one that is not due. Null: there is none. */
  next: Instant | null;
}

/**
 * Counts the occurrences from one that is due up to `now`, in steps, since that may take long: `step` goes on until it is
 * done or `mayGoOn` says no (null: call again).
 */
export function countDue(
  times: CronTimes,
  first: Instant,
  now: Instant,
): { step: (mayGoOn: () => boolean) => DueCount | null } {
  let newest = first;
  let count = 1;
  return {
    step: (mayGoOn) => {
      for (;;) {
        const next = following(times, newest);
        if (next === null || next > now) return { first, newest, count, next };
        newest = next;
        count += 1;
        if (!mayGoOn()) return null;
      }
    },
  };
}
