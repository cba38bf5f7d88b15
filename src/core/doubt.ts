import type { Instant } from './instant.ts';
import type { AttemptError } from './outcome.ts';
import { type Attempted, type Doubt, type Settlement, ended } from './settlement.ts';
import { backoffMs } from './time/backoff.ts';

/** What the target said of an earlier attempt; `arrived` settles the run as any 2xx does. */
export type NoArrival = { kind: 'notArrived' } | { kind: 'unclear'; error: AttemptError };

/**
 * What follows where the target was asked and did not say that the attempt arrived: `send` another one, or a settlement. "Not
 * here" is another attempt, if one is left. Without an answer it is asked again, `maxLookups` times in all; then at-least-once
 * sends again, and at-most-once ends as unknown.
 */
export function afterLookup(
  answer: NoArrival,
  run: Attempted & { doubt: Doubt },
  maxLookups: number,
  now: Instant,
  random: number,
): Settlement | 'send' {
  const { delivery, failures, retry, doubt, wasHandedOff } = run;
  const mayTryAgain = failures < retry.maxAttempts;
  const lookups = doubt.lookups + 1;
  if (answer.kind === 'unclear' && lookups < maxLookups) {
    const retryAt = now + backoffMs(retry, lookups, null, random);
    return { ...ended('pending', failures, answer.error), retryAt, doubt: { ...doubt, lookups } };
  }
  if (answer.kind === 'unclear' && delivery === 'atMostOnce') return ended('unknown', failures, answer.error);
  // It had been there: what became of it nobody knows, and "not here" is not "never came".
  if (wasHandedOff && delivery === 'atMostOnce') return ended('unknown', failures, GONE);
  if (mayTryAgain) return 'send';
  const error = answer.kind === 'unclear' ? answer.error : NOT_ARRIVED;
  return ended('failed', failures, error);
}

const GONE: AttemptError = {
  kind: 'expired',
  message: 'the target had acknowledged it, and does not know of it any more',
};
const NOT_ARRIVED: AttemptError = {
  kind: 'network',
  message: 'the last attempt did not arrive, says the target',
};
