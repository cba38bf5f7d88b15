import { type Instant, isoInstant } from '../instant.ts';
import { isEnd } from './run.ts';
import type { Settlement } from './attempts/settlement.ts';
import type { RunRecord } from './run-record.ts';
import { endRun, entryOf, withAttempt } from './transitions.ts';
import type { RunEnd } from '../run-end.ts';

/** A run that is still silent, in the same attempt; a run that reported meanwhile goes on. */
export function isStillSilent(run: RunRecord, attempt: number, now: Instant): boolean {
  return (
    (run.status === 'running' || run.observed) &&
    run.attempts === attempt &&
    run.expiresAt !== null &&
    run.expiresAt <= now
  );
}

/**
 * Settles silence as an unknown outcome, or the report of a failure that passes. That is then what the log says of the attempt,
 * whatever it said before.
 */
export function expireRun(
  run: RunRecord,
  settlement: Settlement,
  now: Instant,
  outcome: 'unknown' | 'transient' = 'unknown',
): RunRecord {
  const { status, doubt, error } = settlement;
  const logged = run.attemptLog?.find(({ attempt }) => attempt === run.attempts);
  const statusCode = logged ? logged.statusCode : run.resultStatusCode;
  const goesOn = status === 'pending';
  return {
    ...run,
    status,
    failures: settlement.failures,
    dueAt: settlement.retryAt ?? run.dueAt,
    admittedAt: goesOn ? null : run.admittedAt,
    inDoubtUntil: doubt?.inDoubtUntil ?? null,
    lookups: doubt?.lookups ?? 0,
    attemptInDoubt: doubt ? (run.attemptInDoubt ?? run.attempts) : null,
    error,
    expiresAt: null,
    claimedBy: goesOn ? null : run.claimedBy,
    claimedAt: goesOn ? null : run.claimedAt,
    handoffStartedAt: goesOn ? null : run.handoffStartedAt,
    handedOffAt: goesOn && doubt === null ? null : run.handedOffAt,
    finishedAt: isEnd(status) ? now : null,
    // An observed run that never began has no attempt.
    attemptLog:
      run.attempts === 0
        ? run.attemptLog
        : withAttempt(run.attemptLog, entryOf(run, { outcome, statusCode, error }, now), () => true),
    updatedAt: now,
  };
}

/** Whether it has waited too long. An attempt that has begun by then may go on. */
export function hasExpired({ status, claimedBy, beginBy }: RunRecord, now: Instant): boolean {
  return status !== 'running' && claimedBy === null && beginBy !== null && beginBy <= now;
}

/** What was never begun is skipped. Whether an attempt at most once that is in doubt arrived will not be known any more. */
export function expireWaiting(run: RunRecord, { atMostOnce }: { atMostOnce: boolean }, now: Instant): RunRecord {
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
