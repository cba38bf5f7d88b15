import type { AttemptEntry, AttemptOutcome, LookedUp } from './outcome.ts';
import type { Instant } from '../../instant.ts';
import { isEnd } from '../run.ts';
import type { Settlement } from './settlement.ts';
import type { Claim, RunRecord } from '../run-record.ts';
import { withAttempt } from '../transitions.ts';

/** The result of one attempt, with the claim under which it was made. */
export interface AttemptSettlement extends Claim {
  settlement: Settlement;
  outcome: AttemptOutcome;
  startedAt: Instant;
  finishedAt: Instant;
  /** Of the first attempt only. */
  latenessMs: number | null;
  recovery: boolean;
  /** The target's answer about an earlier attempt; `arrived`: nothing was sent. */
  lookup: LookedUp | null;
  /** Whether a request was sent under this claim, as far as firelock knows. */
  sent: boolean;
  /** The target wants no more runs (410). */
  gone?: true;
}

export type Settled =
  | { kind: 'settled'; run: RunRecord }
  /** An earlier statement, whose answer was lost, has written the same already: at most, the log entry is now more precise. */
  | { kind: 'settledBefore'; run: RunRecord }
  /** The claim is no longer valid: the run stays as it is, with one more entry in its log. */
  | { kind: 'fenced'; run: RunRecord; alreadyEnded: boolean };

/**
 * Writes the outcome of an attempt into its run. The guard is the claim under which the attempt was made. One
 * exception: a 2xx settles a run that is still pending, whichever instance claims it now, because it is the truth. But
 * a 2xx that only says that work has begun does not settle a run that was opened again since, or was reported as failed
 * for now, or that has given up the place of its limit: such a run is sent again once it has a place.
 */
export function settleAttempt(run: RunRecord, attempted: AttemptSettlement, now: Instant): Settled {
  if (mayBeSettled(run, attempted)) return { kind: 'settled', run: settledRun(run, attempted, now) };
  if (isSettledSo(run, attempted)) return { kind: 'settledBefore', run: loggedRun(run, attempted) };
  const outcome = attempted.outcome === 'accepted' ? 'acceptedLate' : attempted.outcome;
  const entry = entryOf({ ...attempted, outcome });
  const logged = { ...run, attemptLog: withAttempt(run.attemptLog, entry, isUnsure(attempted)) };
  return { kind: 'fenced', run: logged, alreadyEnded: hasEndedOtherwise(run, attempted) };
}

/**
 * A first attempt's 2xx that ends its run, of which nothing else has to be said: nearly every outcome is one. `settlePlainIfClaimed`
 * settles them, where the row says nothing else either.
 */
export function isPlainSuccess(attempted: AttemptSettlement): boolean {
  const { status, retryAt, doubt, error, judged } = attempted.settlement;
  const isAlone = !attempted.recovery && attempted.lookup === null && retryAt === null && !doubt && !error && !judged;
  return isFirstSuccess(attempted) && status === 'succeeded' && isAlone;
}

function isFirstSuccess({ outcome, attempt }: AttemptSettlement): boolean {
  return outcome === 'accepted' && attempt === 1;
}

/** A target that wants no more runs pauses the schedule of the run. */
export function pausesSchedule(
  { scheduleId }: Pick<RunRecord, 'scheduleId'>,
  { gone }: Pick<AttemptSettlement, 'gone'>,
): boolean {
  return gone === true && scheduleId !== '';
}

function mayBeSettled(run: RunRecord, { outcome, settlement, ...claim }: AttemptSettlement): boolean {
  if (run.status !== 'pending') return false;
  if (settlement.status === 'running' && claim.attempt <= (run.retriedAfter ?? 0)) return false;
  if (settlement.status === 'running' && hasFailedSince(run, claim)) return false;
  if (settlement.status === 'running' && run.limitId !== null && run.admittedAt === null) return false;
  return outcome === 'accepted' || isOfClaim(run, claim);
}

/** Its target took it and said, before this could be written, that it failed for now. */
function hasFailedSince({ attemptLog }: RunRecord, { attempt }: Pick<Claim, 'attempt'>): boolean {
  return attemptLog?.some((one) => one.attempt === attempt && one.outcome === 'transient') === true;
}

function isOfClaim(run: RunRecord, { instanceId, attempt }: Pick<Claim, 'instanceId' | 'attempt'>): boolean {
  return run.claimedBy === instanceId && run.attempts === attempt;
}

function settledRun(run: RunRecord, attempted: AttemptSettlement, now: Instant): RunRecord {
  const { settlement, outcome, startedAt, finishedAt, latenessMs, lookup, instanceId } = attempted;
  const { status, doubt, leaseSeconds } = settlement;
  const isPending = status === 'pending';
  const settled: RunRecord = {
    ...run,
    status,
    failures: Math.max(run.failures, settlement.failures),
    dueAt: settlement.retryAt ?? run.dueAt,
    // Between two attempts, the run gives its place to others.
    admittedAt: isPending ? null : run.admittedAt,
    claimedBy: isPending ? null : instanceId,
    claimedAt: isPending ? null : run.claimedAt,
    handoffStartedAt: !isPending && lookup !== 'arrived' ? startedAt : null,
    handedOffAt: outcome === 'accepted' ? finishedAt : doubt ? run.handedOffAt : null,
    finishedAt: isEnd(status) ? finishedAt : null,
    expiresAt: leaseSeconds === null ? null : now + leaseSeconds * 1000,
    leaseSeconds,
    inDoubtUntil: doubt?.inDoubtUntil ?? null,
    lookups: doubt?.lookups ?? 0,
    attemptInDoubt: attemptInDoubt(run, attempted),
    latenessMs: run.latenessMs ?? latenessMs,
    executionId: settlement.executionId,
    resultStatusCode: settlement.statusCode,
    resultBody: settlement.body,
    error: settlement.error,
    updatedAt: now,
  };
  return loggedRun(settled, attempted);
}

function attemptInDoubt(run: RunRecord, { attempt, settlement, lookup, sent }: AttemptSettlement): number | null {
  if (settlement.status === 'running' && attempt < run.attempts) return attempt;
  if (settlement.doubt === null && lookup !== 'arrived') return null;
  return sent ? attempt : (run.attemptInDoubt ?? attempt);
}

function loggedRun(run: RunRecord, attempted: AttemptSettlement): RunRecord {
  if (isRecordedByRun(run, attempted)) return run;
  return { ...run, attemptLog: withAttempt(run.attemptLog, entryOf(attempted), isUnsure(attempted)) };
}

/** It gets no entry: the run itself shows everything (attemptLogOf). */
function isRecordedByRun(run: RunRecord, attempted: AttemptSettlement): boolean {
  return isFirstSuccess(attempted) && run.attempts === 1 && run.lostAt === null;
}

function entryOf(attempted: AttemptSettlement): AttemptEntry {
  const { attempt, instanceId, startedAt, finishedAt, outcome, settlement, recovery, lookup } = attempted;
  return {
    attempt,
    instanceId,
    startedAt,
    finishedAt,
    outcome,
    statusCode: settlement.statusCode,
    error: settlement.error,
    recovery,
    lookup,
  };
}

/** When the real outcome of an attempt is known, it replaces recovery's 'unknown' entry. */
function isUnsure({ outcome }: AttemptSettlement): (logged: AttemptEntry) => boolean {
  return (logged) => logged.outcome === 'unknown' && outcome !== 'unknown';
}

function isSettledSo(run: RunRecord, attempted: AttemptSettlement): boolean {
  const { settlement, attempt, instanceId, finishedAt } = attempted;
  if (run.status !== settlement.status) return false;
  if (run.status === 'pending')
    return run.claimedBy === null && run.attempts === attempt && run.failures === settlement.failures;
  if (run.claimedBy !== instanceId) return false;
  return run.status === 'running' ? run.handedOffAt === finishedAt : run.finishedAt === finishedAt;
}

/** firelock itself, or a report about the run, has ended it meanwhile: this is no fault. */
function hasEndedOtherwise(run: RunRecord, attempted: AttemptSettlement): boolean {
  if (run.reason === 'replaced' || run.reason === 'deleted' || run.reason === 'request') return true;
  return (run.status === 'succeeded' || run.status === 'failed') && isOfClaim(run, attempted);
}
