/** After a slice of one user's volume, a loop rests for three times as long as that took: three quarters of the time are for others. */
const TIMES_ITS_WORK = 3;
const MAX_REST_MS = 500;

/** How many ms to rest after a slice that took so many. */
export function restAfter(tookMs: number): number {
  return Math.min(MAX_REST_MS, TIMES_ITS_WORK * tookMs);
}
