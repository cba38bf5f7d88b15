import type { Instant } from '../../instant.ts';
import {
  type Accepted,
  type AttemptError,
  type Outcome,
  type Transient,
  type Unknown,
  rejectionError,
} from './outcome.ts';
import type { Completion, Delivery, Handoff, RetryPolicy } from '../../schedules/schedule.ts';
import { type JudgedSuccess, judgedSuccess } from '../bounds.ts';

/** What an attempt's outcome makes of its run. */
export interface Settlement {
  status: 'succeeded' | 'failed' | 'pending' | 'running' | 'unknown';
  failures: number;
  /** For a run that awaits its completion: after this time without a heartbeat or an end, its outcome is unknown. */
  leaseSeconds: number | null;
  /** When the next attempt is due; null: there is none, or this attempt did not count and the run is due as before. */
  retryAt: Instant | null;
  executionId: string | null;
  statusCode: number | null;
  body: string | null;
  error: AttemptError | null;
  doubt: Doubt | null;
  /** Of a success: what `expect` says of it; null or absent: nothing. */
  judged?: JudgedSuccess | null;
}

/** An attempt may have arrived; firelock asks the target before it does anything else about the run. */
export interface Doubt {
  /**
   * From this moment on, nothing of the attempt can still arrive: only then may "it is not here" be believed
   * (doubt.ts).
   */
  inDoubtUntil: Instant;
  /** How often firelock asked without a clear answer. */
  lookups: number;
}

/** What the rule needs to know about the run and the attempt that ended. */
export interface Attempted {
  failures: number;
  retry: RetryPolicy;
  delivery: Delivery;
  completion: Completion;
  completionTimeoutSeconds: number;
  /** firelock can ask the target what happened to an attempt. */
  hasLookup: boolean;
  startedAt: Instant;
  timeoutSeconds: number;
  expect?: Handoff['expect'];
  /** No attempt begins after this moment; null: only `maxAttempts` bounds them. */
  giveUpAt: Instant | null;
  /** What was in doubt when the run was claimed. */
  doubt: Doubt | null;
  /** The target had acknowledged the attempt in doubt, and then sent no report. */
  wasHandedOff: boolean;
}

/**
 * A 2xx ends the run, or begins the wait for its completion; a permanent answer or a blocked address fails it. At least
 * once: all other outcomes lead to another attempt until `maxAttempts` failures. At most once: only an attempt that the
 * target provably did not take leads to another. An attempt that ended unsent because its sender stopped is no failure,
 * and the run stays due as it was. `random` in [0, 1).
 */
export function settlementOf(outcome: Outcome, attempted: Attempted, now: Instant, random: number): Settlement {
  switch (outcome.kind) {
    case 'accepted':
      return accepted(outcome, attempted);
    case 'rejected':
      return failed(attempted, outcome);
    case 'blocked':
      return ended('failed', attempted.failures, outcome.error);
    case 'transient':
      return notTaken(outcome, attempted, now, random);
    case 'unknown':
      return afterUnknown(outcome, attempted, now, random);
  }
}

/**
 * For runs that await their completion, what the target says about the work itself counts; for others, taking the run
 * is enough.
 */
function accepted(
  { executionId, statusCode, body, reported, resultFault = null }: Accepted,
  { failures, retry, delivery, completion, completionTimeoutSeconds, expect }: Attempted,
): Settlement {
  const answer = { executionId, statusCode, body };
  if (completion === 'response' || reported === 'succeeded')
    return {
      ...ended('succeeded', failures, null),
      ...answer,
      judged: judgedSuccess(expect, () => resultFault),
    };
  if (reported === 'failed') return { ...ended('failed', failures, REPORTED_FAILED), ...answer };
  // The target has the run, and does not say whether the work goes on. firelock does not ask for ever.
  if (reported === undefined && failures >= retry.maxAttempts)
    return { ...ended(delivery === 'atMostOnce' ? 'unknown' : 'failed', failures, SILENT), ...answer };
  return { ...ended('running', failures, null), ...answer, leaseSeconds: completionTimeoutSeconds };
}

const SILENT: AttemptError = {
  kind: 'expired',
  message: 'the target accepted the run but never reported an outcome',
};
const REPORTED_FAILED: AttemptError = {
  kind: 'reported',
  message: 'the target reported that the run failed',
};

function notTaken(outcome: Transient, attempted: Attempted, now: Instant, random: number): Settlement {
  const { failures, delivery, doubt } = attempted;
  if (outcome.senderStopped) return { ...ended('pending', failures, outcome.error), doubt };
  const { statusCode, body, error, byRule = false } = outcome;
  if (delivery === 'atMostOnce' && !byRule && statusCode !== null && !NOT_TAKEN.has(statusCode)) {
    if (!GATEWAY.has(statusCode)) return failed(attempted, { statusCode, body: body ?? '' });
    const unknown = afterUnknown({ kind: 'unknown', error, senderStopped: false }, attempted, now, random);
    return { ...unknown, statusCode, body };
  }
  return { ...triedAgain(attempted, outcome, now, random), statusCode, body };
}

/** The answer says that the target did not take the request. */
const NOT_TAKEN = new Set([425, 429, 503]);
/** The answer of a gateway that got none from the server behind it. */
const GATEWAY = new Set([408, 502, 504]);

function afterUnknown(outcome: Unknown, attempted: Attempted, now: Instant, random: number): Settlement {
  const { failures, delivery, hasLookup, startedAt, timeoutSeconds } = attempted;
  if (delivery === 'atMostOnce') {
    if (!hasLookup) return ended('unknown', failures, outcome.error);
    // The sender has reset its socket: a request that was under way arrives by the attempt's own time limit, or never.
    const inDoubtUntil = Math.max(now, startedAt + timeoutSeconds * 1000);
    return {
      ...ended('pending', failures + Number(outcome.error.kind === 'expired'), outcome.error),
      retryAt: now,
      doubt: { inDoubtUntil, lookups: 0 },
    };
  }
  const doubt = hasLookup ? { inDoubtUntil: now, lookups: 0 } : null;
  if (outcome.senderStopped) return { ...ended('pending', failures, outcome.error), doubt };
  const again = triedAgain(attempted, outcome, now, random);
  if (again.status === 'pending') return { ...again, doubt };
  if (!hasLookup) return again;
  // The last attempt counts as a failure only if the target does not know of it.
  return { ...again, status: 'pending', retryAt: now, doubt };
}

function triedAgain(
  { failures, retry, giveUpAt }: Attempted,
  outcome: Transient | Unknown,
  now: Instant,
  random: number,
): Settlement {
  const count = failures + 1;
  if (count >= retry.maxAttempts) return ended('failed', count, outcome.error);
  const retryAfterSeconds = outcome.kind === 'transient' ? outcome.retryAfterSeconds : null;
  const retryAt = now + backoffMs(retry, count, retryAfterSeconds, random);
  if (giveUpAt !== null && retryAt > giveUpAt) return ended('failed', count, outcome.error);
  return { ...ended('pending', count, outcome.error), retryAt };
}

function failed({ failures }: Attempted, rejected: Parameters<typeof rejectionError>[0]): Settlement {
  const { statusCode, body } = rejected;
  return { ...ended('failed', failures, rejectionError(rejected)), statusCode, body };
}

export function ended(status: Settlement['status'], failures: number, error: AttemptError | null): Settlement {
  return {
    status,
    failures,
    leaseSeconds: null,
    retryAt: null,
    executionId: null,
    statusCode: null,
    body: null,
    error,
    doubt: null,
  };
}

/** For a database that refuses its texts. */
export function withoutText(settlement: Settlement): Settlement {
  return { ...settlement, body: null, executionId: null, error: null };
}

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
