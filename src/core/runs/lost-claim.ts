import type { Instant } from '../instant.ts';
import type { AttemptError } from './attempts/outcome.ts';
import type { RunRecord } from './run-record.ts';
import { isOfSchedule } from './run.ts';
import { entryOf, withAttempt } from './transitions.ts';

/**
 * What happens to a run whose claim was lost: `again`: it goes on; `unknown`: it ends so; otherwise the reason for
 * which it is abandoned.
 */
export type LostVerdict = 'again' | 'unknown' | 'deleted' | 'disabled' | 'recoveries' | 'age';

export interface RecoveryPolicy {
  /** How often recovery takes a run over before it gives the run up. */
  maxRecoveries: number;
  /** Recovery gives up a run whose first attempt began longer ago than this; if it was to be retried later, its newest one was due. */
  maxRecoveryAgeSeconds: number;
  /** Added to an attempt's own limit: how long a frozen instance may still act on a decision from before it froze. */
  lockTtlSeconds: number;
}

/** What the run's definition, and its schedule, say. */
export interface LostRunFacts {
  atMostOnce: boolean;
  /** firelock can ask the target whether an attempt arrived. */
  hasLookup: boolean;
  timeoutSeconds: number;
  /** Null: the schedule is gone. One-off runs and messages have none. */
  schedule: { enabled: boolean } | null;
}

/**
 * The one judgement of a lost claim: deliver again, ask the target, end as unknown, or abandon. Nothing is known of the attempt beyond
 * the run's row, so under atMostOnce an attempt that may have begun is never repeated unless the target says that it did not arrive.
 */
export function judgeLostClaim(run: RunRecord, facts: LostRunFacts, policy: RecoveryPolicy, now: Instant): LostVerdict {
  const givenUp = reasonToGiveUp(run, facts, policy, now);
  const mayHaveArrived = run.handoffStartedAt !== null || run.inDoubtUntil !== null;
  if (facts.atMostOnce && mayHaveArrived && (!facts.hasLookup || givenUp !== null)) return 'unknown';
  return givenUp ?? 'again';
}

function reasonToGiveUp(
  run: RunRecord,
  { schedule }: LostRunFacts,
  { maxRecoveries, maxRecoveryAgeSeconds }: RecoveryPolicy,
  now: Instant,
): Exclude<LostVerdict, 'again' | 'unknown'> | null {
  if (schedule === null && isOfSchedule(run)) return 'deleted';
  const isPlannedFire = run.trigger === 'schedule' || run.trigger === 'catchUp';
  if (schedule?.enabled === false && isPlannedFire) return 'disabled';
  if (run.recoveries >= maxRecoveries) return 'recoveries';
  // Before its first attempt a run is work that waits: for a place, a queue, or the end of maintenance.
  const since = Math.max(run.firstClaimedAt ?? run.createdAt, run.dueAt);
  const isMessage = run.trigger === 'notify';
  const maxAgeSeconds = isMessage ? Math.max(MESSAGE_AGE_SECONDS, maxRecoveryAgeSeconds) : maxRecoveryAgeSeconds;
  return since < now - maxAgeSeconds * 1000 ? 'age' : null;
}

/** A message of a notifier is tried for so long, however soon other runs are given up. */
const MESSAGE_AGE_SECONDS = 86_400;

/** The run after the verdict; its log contains the lost attempt. */
export function takeOverRun(
  run: RunRecord,
  verdict: LostVerdict,
  facts: LostRunFacts,
  policy: RecoveryPolicy,
  now: Instant,
): RunRecord {
  const error = lostError(run, facts);
  const outcome = facts.atMostOnce && run.handoffStartedAt === null ? 'transient' : 'unknown';
  const taken = {
    ...run,
    lostAt: run.lostAt ?? now,
    recoveredAt: now,
    lookups: facts.atMostOnce && run.handoffStartedAt === null ? run.lookups : 0,
    attemptLog: withAttempt(run.attemptLog, entryOf(run, { outcome, statusCode: null, error }, now)),
    updatedAt: now,
  };
  if (verdict === 'again') return drivenOn(taken, facts, policy, now);
  const ended = { ...taken, finishedAt: now, inDoubtUntil: null, attemptInDoubt: null };
  if (verdict !== 'unknown') return { ...ended, status: 'abandoned', reason: verdict };
  const { handoffStartedAt, dueAt } = run;
  const latenessMs = run.latenessMs ?? (handoffStartedAt === null ? null : handoffStartedAt - dueAt);
  return { ...ended, status: 'unknown', reason: null, error, latenessMs };
}

function drivenOn(run: RunRecord, facts: LostRunFacts, policy: RecoveryPolicy, now: Instant): RunRecord {
  const inDoubtUntil = doubtAfterLoss(run, facts, policy, now);
  const keepsEarlier = run.handoffStartedAt === null && run.inDoubtUntil !== null;
  const doubt = keepsEarlier ? (run.attemptInDoubt ?? run.attempts) : run.attempts;
  return {
    ...run,
    recoveries: run.recoveries + 1,
    claimedBy: null,
    claimedAt: null,
    handoffStartedAt: null,
    inDoubtUntil,
    attemptInDoubt: inDoubtUntil === null ? null : doubt,
  };
}

/** From this moment on, firelock can believe the target's "no". Null: there is no need to ask, or no lookup. */
function doubtAfterLoss(
  { handoffStartedAt, inDoubtUntil }: RunRecord,
  { atMostOnce, hasLookup, timeoutSeconds }: LostRunFacts,
  { lockTtlSeconds }: Pick<RecoveryPolicy, 'lockTtlSeconds'>,
  now: Instant,
): Instant | null {
  if (!hasLookup) return null;
  if (!atMostOnce) return inDoubtUntil ?? now;
  if (handoffStartedAt === null) return inDoubtUntil;
  return handoffStartedAt + (timeoutSeconds + lockTtlSeconds) * 1000;
}

function lostError({ claimedBy, handoffStartedAt }: RunRecord, { atMostOnce }: LostRunFacts): AttemptError {
  const isUnsent = atMostOnce && handoffStartedAt === null;
  const when = isUnsent ? 'before it sent this attempt' : 'during this attempt, which may have been sent';
  return { kind: 'network', message: `instance ${claimedBy ?? 'unknown'} was lost ${when}` };
}

/**
 * A pending or waiting run of a restored database: it may have been sent since the backup. At most once: a run that was
 * claimed or due ends as `unknown`, or firelock asks its target. At least once: firelock asks the target first if it
 * has a lookup. Null: the run stays as it is.
 */
export function resumeRun(
  run: RunRecord,
  facts: Omit<LostRunFacts, 'schedule'>,
  { reason, lockTtlSeconds }: { reason: string; lockTtlSeconds: number },
  now: Instant,
): RunRecord | null {
  const { atMostOnce, hasLookup, timeoutSeconds } = facts;
  if (run.observed || (!atMostOnce && !hasLookup)) return null;
  // A run that was neither claimed nor due cannot have been sent; a run that is in doubt already stays so.
  if (run.inDoubtUntil !== null || (run.claimedBy === null && run.dueAt > now)) return null;
  if (!hasLookup) {
    const error: AttemptError = { kind: 'network', message: reason };
    return { ...run, status: 'unknown', error, finishedAt: now, updatedAt: now };
  }
  const inDoubtUntil = atMostOnce ? now + (timeoutSeconds + lockTtlSeconds) * 1000 : now;
  return {
    ...run,
    dueAt: Math.max(run.dueAt, inDoubtUntil),
    inDoubtUntil,
    attemptInDoubt: run.attempts,
    lookups: 0,
    admittedAt: null,
    claimedBy: null,
    claimedAt: null,
    updatedAt: now,
  };
}
