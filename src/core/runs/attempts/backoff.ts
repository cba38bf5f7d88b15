import type { RetryPolicy } from '../../schedules/schedule.ts';

const MAX_BACKOFF_SECONDS = 7 * 86_400;

/**
 * Milliseconds until the next attempt after `failures` (≥ 1) of them: min · 2^(failures−1), capped, ±10 % so that runs
 * that failed together do not come back together. A target's `Retry-After` can lengthen it up to the cap, never shorten
 * it. `random` in [0, 1).
 */
export function backoffMs(
  policy: RetryPolicy,
  failures: number,
  retryAfterSeconds: number | null,
  random: number,
): number {
  const { minBackoffSeconds } = policy;
  // The API's maximum: a row with a larger value must not lead to an instant that cannot be written.
  const maxBackoffSeconds = Math.min(policy.maxBackoffSeconds, MAX_BACKOFF_SECONDS);
  const exponential = Math.min(maxBackoffSeconds, minBackoffSeconds * 2 ** (failures - 1));
  const spread = exponential * (0.9 + 0.2 * random);
  const asked = Math.min(maxBackoffSeconds, retryAfterSeconds ?? 0);
  return Math.round(Math.max(spread, asked) * 1000);
}
