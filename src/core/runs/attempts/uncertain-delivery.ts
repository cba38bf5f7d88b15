import type { Instant } from '../../instant.ts';
import type { AttemptError } from './outcome.ts';
import { type Attempted, type UncertainDelivery, type Settlement, ended } from './settlement.ts';
import { backoffMs } from '../../time/backoff.ts';

type UncertainAttempt = Attempted & { uncertain: UncertainDelivery };

/** What the target said of an earlier attempt; `arrived` settles the run as any 2xx does. */
export type NoArrival = { kind: 'notArrived' } | { kind: 'unclear'; error: AttemptError };

interface Asking {
  maxLookups: number;
  /** Not later than the target was asked. */
  askedAt: Instant;
  now: Instant;
  /** In [0, 1). */
  random: number;
}

/**
 * "It is here" is believed whenever a target says so. "It is not here" is believed at most once only where the target
 * was asked when nothing of the earlier attempt could still arrive.
 */
function mayBelieveAbsence({ delivery, uncertain }: UncertainAttempt, askedAt: Instant): boolean {
  return delivery === 'atLeastOnce' || askedAt >= uncertain.lookupAfter;
}

/**
 * What follows when the target was asked and did not say that the attempt arrived: `send` another one, or a settlement.
 * "Not here" leads to another attempt, if one is left. If the target was asked too early, it is asked again when it can
 * be believed. Without an answer it is asked again, `maxLookups` times in all and the last time not too early. Then
 * at-least-once sends again, and at-most-once ends as unknown.
 */
export function afterLookup(answer: NoArrival, run: UncertainAttempt, asking: Asking): Settlement | 'send' {
  const { delivery, failures, retry, wasHandedOff } = run;
  if (!mayBelieveAbsence(run, asking.askedAt)) return askedEarly(answer, run, asking);
  if (answer.kind === 'unclear' && run.uncertain.lookups + 1 < asking.maxLookups)
    return askedAgain(answer.error, run, asking);
  if (answer.kind === 'unclear' && delivery === 'atMostOnce') return ended('unknown', failures, answer.error);
  // It had been there: what became of it is unknown, and "not here" is not "never came".
  if (wasHandedOff && delivery === 'atMostOnce') return ended('unknown', failures, GONE);
  if (failures < retry.maxAttempts) return 'send';
  const error = answer.kind === 'unclear' ? answer.error : NOT_ARRIVED;
  return ended('failed', failures, error);
}

function askedEarly(answer: NoArrival, run: UncertainAttempt, asking: Asking): Settlement {
  const { failures, uncertain } = run;
  if (answer.kind === 'unclear' && uncertain.lookups + 1 < asking.maxLookups)
    return askedAgain(answer.error, run, asking);
  const error = answer.kind === 'unclear' ? answer.error : NOT_YET;
  return {
    ...ended('pending', failures, error),
    retryAt: Math.max(asking.now, uncertain.lookupAfter),
    uncertain,
  };
}

function askedAgain(
  error: AttemptError,
  { failures, retry, uncertain }: UncertainAttempt,
  asking: Asking,
): Settlement {
  const lookups = uncertain.lookups + 1;
  const retryAt = asking.now + backoffMs(retry, lookups, null, asking.random);
  return { ...ended('pending', failures, error), retryAt, uncertain: { ...uncertain, lookups } };
}

const GONE: AttemptError = {
  kind: 'expired',
  message: 'the target had acknowledged it, and does not know of it any more',
};
const NOT_YET: AttemptError = {
  kind: 'network',
  message:
    'the last attempt has not arrived yet, says the target, which is asked again once it cannot any more',
};
const NOT_ARRIVED: AttemptError = {
  kind: 'network',
  message: 'the last attempt did not arrive, says the target',
};
