import { EARLIEST, type Instant } from '../instant.ts';

/** History is kept by the UTC day on which runs ended: a day is its first moment. */
export const DAY_MS = 86_400_000;

export function dayOf(at: Instant): Instant {
  return Math.max(EARLIEST, Math.floor(at / DAY_MS) * DAY_MS);
}
