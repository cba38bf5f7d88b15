import type { Run, Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';

/** From its last handoff to its end; null: it is not over, or was never handed off. */
export function durationOf({ handoffStartedAt, claimedAt, finishedAt }: Run): number | null {
  const begin = handoffStartedAt ?? claimedAt;
  if (begin === null || finishedAt === null) return null;
  return Math.max(0, Date.parse(finishedAt) - Date.parse(begin));
}

/** The smallest value that at least this part of all is not above; null: there are none. */
export function percentile(values: readonly (number | null)[], part: number): number | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known[Math.max(0, Math.ceil(part * known.length) - 1)] ?? null;
}

/** It has no fires: its job only reports. */
export function isHeartbeat({ cron, everySeconds, at, after }: Schedule): boolean {
  return cron === null && everySeconds === null && at === null && after === null;
}
