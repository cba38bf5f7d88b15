import type { Instant } from '../instant.ts';
import type { AttemptError } from './attempts/outcome.ts';
import type { RunRecord } from './run-record.ts';
import { withAttempt } from './transitions.ts';

/** What becomes of a run whose claim was lost: `again`, driven on; `unknown`, ended so; else why it is abandoned. */
export type LostVerdict = 'again' | 'unknown' | 'deleted' | 'disabled' | 'recoveries' | 'age';

export interface RecoveryPolicy {
  /** How often a run is driven on before it is given up. */
  maxRecoveries: number;
  /** A run that has been due for longer than this is given up. */
  maxRecoveryAgeSeconds: number;
  /** Added to an attempt's own limit: how long a frozen instance may still act on what it decided before it froze. */
  lockTtlSeconds: number;
}

/** What the definition of the run, and its schedule, say. */
export interface LostRunFacts {
  atMostOnce: boolean;
  /** The target can be asked whether an attempt arrived. */
  hasLookup: boolean;
  timeoutSeconds: number;
  /** Null: the schedule is gone. A one-off run has none. */
  schedule: { enabled: boolean } | null;
}

/**
 * The one judgement of a lost claim: deliver again, ask the target, end as unknown, or abandon. Nothing is known of the attempt beyond
 * the run's row, so under atMostOnce an attempt that may have begun is never repeated unless the target says that it did not arrive.
 */
export function judgeLostClaim(
  run: RunRecord,
  facts: LostRunFacts,
  policy: RecoveryPolicy,
  now: Instant,
): LostVerdict {
  const givenUp = reasonToGiveUp(run, facts, policy, now);
  const mayHaveArrived = run.handoffStartedAt !== null || run.lookupAfter !== null;
  if (facts.atMostOnce && mayHaveArrived && (!facts.hasLookup || givenUp !== null)) return 'unknown';
  return givenUp ?? 'again';
}

function reasonToGiveUp(
  run: RunRecord,
  { schedule }: LostRunFacts,
  { maxRecoveries, maxRecoveryAgeSeconds }: RecoveryPolicy,
  now: Instant,
): Exclude<LostVerdict, 'again' | 'unknown'> | null {
  if (schedule === null && run.trigger !== 'api') return 'deleted';
  const isPlannedFire = run.trigger === 'schedule' || run.trigger === 'catchUp';
  if (schedule?.enabled === false && isPlannedFire) return 'disabled';
  if (run.recoveries >= maxRecoveries) return 'recoveries';
  const dueSince = Math.max(run.createdAt, run.dueAt);
  return dueSince < now - maxRecoveryAgeSeconds * 1000 ? 'age' : null;
}

/** The run as the verdict leaves it; the attempt that was lost stands in its log. */
export function takeOverRun(
  run: RunRecord,
  verdict: LostVerdict,
  facts: LostRunFacts,
  policy: RecoveryPolicy,
  now: Instant,
): RunRecord {
  const error = lostError(run, facts);
  const taken = {
    ...run,
    lostAt: run.lostAt ?? now,
    recoveredAt: now,
    lookups: facts.atMostOnce && run.handoffStartedAt === null ? run.lookups : 0,
    attemptLog: withAttempt(run.attemptLog, lostEntry(run, facts, error, now)),
    updatedAt: now,
  };
  if (verdict === 'again') return drivenOn(taken, facts, policy, now);
  const ended = { ...taken, finishedAt: now, lookupAfter: null, uncertainAttempt: null };
  if (verdict !== 'unknown') return { ...ended, status: 'abandoned', reason: verdict };
  const { handoffStartedAt, dueAt } = run;
  const latenessMs = run.latenessMs ?? (handoffStartedAt === null ? null : handoffStartedAt - dueAt);
  return { ...ended, status: 'unknown', reason: null, error, latenessMs };
}

function drivenOn(run: RunRecord, facts: LostRunFacts, policy: RecoveryPolicy, now: Instant): RunRecord {
  const lookupAfter = lookupAfterLoss(run, facts, policy, now);
  const keepsEarlier = run.handoffStartedAt === null && run.lookupAfter !== null;
  const uncertain = keepsEarlier ? (run.uncertainAttempt ?? run.attempts) : run.attempts;
  return {
    ...run,
    recoveries: run.recoveries + 1,
    claimedBy: null,
    claimedAt: null,
    handoffStartedAt: null,
    lookupAfter,
    uncertainAttempt: lookupAfter === null ? null : uncertain,
  };
}

/** The moment from which the target's "no" can be believed. Null: no need to ask, or no lookup. */
function lookupAfterLoss(
  { handoffStartedAt, lookupAfter }: RunRecord,
  { atMostOnce, hasLookup, timeoutSeconds }: LostRunFacts,
  { lockTtlSeconds }: Pick<RecoveryPolicy, 'lockTtlSeconds'>,
  now: Instant,
): Instant | null {
  if (!hasLookup) return null;
  if (!atMostOnce) return lookupAfter ?? now;
  if (handoffStartedAt === null) return lookupAfter;
  return handoffStartedAt + (timeoutSeconds + lockTtlSeconds) * 1000;
}

function lostError({ claimedBy, handoffStartedAt }: RunRecord, { atMostOnce }: LostRunFacts): AttemptError {
  const sent = atMostOnce && handoffStartedAt === null ? ' unsent' : '; it may have been sent';
  return { kind: 'network', message: `instance ${claimedBy ?? 'unknown'} was lost with this attempt${sent}` };
}

function lostEntry(run: RunRecord, { atMostOnce }: LostRunFacts, error: AttemptError, now: Instant) {
  const { attempts, claimedBy, claimedAt, handoffStartedAt, recoveries } = run;
  return {
    attempt: attempts,
    instanceId: claimedBy ?? NO_INSTANCE,
    startedAt: handoffStartedAt ?? claimedAt ?? now,
    finishedAt: now,
    outcome: atMostOnce && handoffStartedAt === null ? ('transient' as const) : ('unknown' as const),
    statusCode: null,
    error,
    recovery: recoveries > 0,
    lookup: null,
  };
}

/** The log names an instance; a row written by another program may have none. */
export const NO_INSTANCE = '00000000-0000-0000-0000-000000000000';

/**
 * A pending or waiting run of a restored database, which may have been sent since the backup. At most once: a run that was claimed or
 * due ends as `unknown`, or its target is asked. At least once: the target is asked first if it has a lookup.
 * Null: the run stays as it is.
 */
export function resumeRun(
  run: RunRecord,
  facts: Omit<LostRunFacts, 'schedule'>,
  { reason, lockTtlSeconds }: { reason: string; lockTtlSeconds: number },
  now: Instant,
): RunRecord | null {
  const { atMostOnce, hasLookup, timeoutSeconds } = facts;
  if (!atMostOnce && !hasLookup) return null;
  // What was neither claimed nor due cannot have been sent; what is uncertain already stays so.
  if (run.lookupAfter !== null || (run.claimedBy === null && run.dueAt > now)) return null;
  if (!hasLookup) {
    const error: AttemptError = { kind: 'network', message: reason };
    return { ...run, status: 'unknown', error, finishedAt: now, updatedAt: now };
  }
  const lookupAfter = atMostOnce ? now + (timeoutSeconds + lockTtlSeconds) * 1000 : now;
  return {
    ...run,
    dueAt: Math.max(run.dueAt, lookupAfter),
    lookupAfter,
    uncertainAttempt: run.attempts,
    lookups: 0,
    admittedAt: null,
    claimedBy: null,
    claimedAt: null,
    updatedAt: now,
  };
}
