import type { Instant } from './instant.ts';
import type { AttemptError, Outcome, Transient, Unknown } from './outcome.ts';
import type { RetryPolicy } from './schedule.ts';
import { backoffMs } from './time/backoff.ts';

/** Where an attempt's outcome takes its run. */
export interface Settlement {
  status: 'succeeded' | 'failed' | 'pending';
  failures: number;
  /** When the next attempt is due; null where there is none. */
  retryAt: Instant | null;
  executionId: string | null;
  statusCode: number | null;
  body: string | null;
  error: AttemptError | null;
}

/**
 * The rule of at-least-once delivery: a 2xx ends the run, a permanent answer fails it, all else is tried again until
 * `maxAttempts` failures. An attempt that ended because its sender stopped is no failure and is due at once.
 */
export function settlementOf(
  outcome: Outcome,
  run: { failures: number; retry: RetryPolicy },
  now: Instant,
  random: number,
): Settlement {
  switch (outcome.kind) {
    case 'accepted':
      return {
        ...ended('succeeded', run.failures, outcome, null),
        executionId: outcome.executionId,
      };
    case 'rejected':
      return ended('failed', run.failures, outcome, httpError(outcome.statusCode));
    case 'transient':
    case 'unknown':
      return outcome.senderStopped
        ? { ...ended('pending', run.failures, {}, outcome.error), retryAt: now }
        : tryAgain(run, now, random, outcome);
  }
}

interface Answer {
  statusCode?: number | null;
  body?: string | null;
}

function tryAgain(
  run: { failures: number; retry: RetryPolicy },
  now: Instant,
  random: number,
  outcome: Transient | Unknown,
): Settlement {
  const answer = outcome.kind === 'transient' ? outcome : {};
  const retryAfterSeconds = outcome.kind === 'transient' ? outcome.retryAfterSeconds : null;
  const failures = run.failures + 1;
  const settled = ended('failed', failures, answer, outcome.error);
  if (failures >= run.retry.maxAttempts) return settled;
  return {
    ...settled,
    status: 'pending',
    retryAt: now + backoffMs(run.retry, failures, retryAfterSeconds, random),
  };
}

function ended(
  status: Settlement['status'],
  failures: number,
  answer: Answer,
  error: AttemptError | null,
): Settlement {
  const { statusCode = null, body = null } = answer;
  return { status, failures, retryAt: null, executionId: null, statusCode, body, error };
}

function httpError(statusCode: number): AttemptError {
  return { kind: 'http', message: `the target answered ${statusCode}`, statusCode };
}
