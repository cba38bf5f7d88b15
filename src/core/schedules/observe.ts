import type { Instant } from '../instant.ts';

/** Another scheduler runs the job: occurrences before `until` (null: all) are recorded, not sent. */
export interface Observe {
  until: Instant | null;
}

/** Every moment belongs to exactly one of the two. `recordIntentsIfLocked` and `recordAfterRuns` say the same in SQL. */
export function isObservedAt(observe: Observe | null, scheduledFor: Instant): boolean {
  return observe !== null && (observe.until === null || scheduledFor < observe.until);
}

/** Of all observed runs: no dispatcher and no worker knows a target of that kind. */
export const OBSERVED_LANE = 'observed';
