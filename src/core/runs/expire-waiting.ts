import { type Instant, isoInstant } from '../instant.ts';
import type { RunEnd } from '../run-end.ts';
import type { RunRecord } from './run-record.ts';
import { endRun } from './transitions.ts';

/** Whether it has waited too long. An attempt that has begun by then may go on. */
export function hasExpired({ status, claimedBy, beginBy }: RunRecord, now: Instant): boolean {
  return status !== 'running' && claimedBy === null && beginBy !== null && beginBy <= now;
}

/** What was never begun is skipped. Whether an attempt at most once that is in doubt arrived will not be known any more. */
export function expireWaiting(
  run: RunRecord,
  { atMostOnce }: { atMostOnce: boolean },
  now: Instant,
): RunRecord {
  if (!wasBegun(run)) return endRun(run, { status: 'skipped', reason: 'expired' }, now);
  const status: RunEnd = atMostOnce && run.inDoubtUntil !== null ? 'unknown' : 'failed';
  const until = isoInstant(run.beginBy ?? now);
  const before = run.error === null ? '' : `; before that: ${run.error.message}`;
  const message = `it expired at ${until} as it waited to be tried again${before}`;
  const ended = endRun(run, { status, error: { ...run.error, kind: 'expired', message } }, now);
  return { ...ended, inDoubtUntil: null, attemptInDoubt: null };
}

/** Also before it was opened again. */
function wasBegun({ firstClaimedAt, latenessMs, attemptLog }: RunRecord): boolean {
  return firstClaimedAt !== null || latenessMs !== null || attemptLog !== null;
}
