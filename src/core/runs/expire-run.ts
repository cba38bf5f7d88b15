import type { Instant } from '../instant.ts';
import { isEnd } from './run.ts';
import type { Settlement } from './attempts/settlement.ts';
import { NO_INSTANCE } from './lost-claim.ts';
import type { RunRecord } from './run-record.ts';
import { withAttempt } from './transitions.ts';

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
        : withAttempt(run.attemptLog, { ...expiredEntry(run, settlement, now), outcome }, () => true),
    updatedAt: now,
  };
}

function expiredEntry(run: RunRecord, { error }: Settlement, now: Instant) {
  const logged = run.attemptLog?.find(({ attempt }) => attempt === run.attempts);
  return {
    attempt: run.attempts,
    instanceId: run.claimedBy ?? NO_INSTANCE,
    startedAt: run.handoffStartedAt ?? run.claimedAt ?? now,
    finishedAt: now,
    statusCode: logged ? logged.statusCode : run.resultStatusCode,
    error,
    recovery: run.recoveries > 0,
    lookup: null,
  };
}
