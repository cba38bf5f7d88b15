import type { Instant } from '../../instant.ts';
import type { AttemptError } from './outcome.ts';
import { type Attempted, type Doubt, type Settlement, backoffMs, ended } from './settlement.ts';

type AttemptInDoubt = Attempted & { doubt: Doubt };

/** The target's answer about an earlier attempt; `arrived` settles the run as any 2xx does. */
export type NoArrival = { kind: 'notArrived' } | { kind: 'unclear'; error: AttemptError };

interface Asking {
  maxLookups: number;
  /** Not later than the moment at which the target was asked. */
  askedAt: Instant;
  now: Instant;
  /** In [0, 1). */
  random: number;
}

/**
 * firelock always believes "it is here". Under at-most-once it believes "it is not here" only if it asked at a time
 * when nothing of the earlier attempt could still arrive.
 */
function mayBelieveAbsence({ delivery, doubt }: AttemptInDoubt, askedAt: Instant): boolean {
  return delivery === 'atLeastOnce' || askedAt >= doubt.inDoubtUntil;
}

/**
 * What follows if firelock asked, and the target did not say that the attempt arrived: `send` another one, or a
 * settlement. "Not here" leads to another attempt, if one is left. If firelock asked too early, it asks again at the
 * time when it can believe the answer. Without an answer it asks again, `maxLookups` times in all and the last time not
 * too early. Then at-least-once sends again, and at-most-once ends as unknown.
 */
export function afterLookup(answer: NoArrival, run: AttemptInDoubt, asking: Asking): Settlement | 'send' {
  const { delivery, failures, retry, wasHandedOff } = run;
  if (!mayBelieveAbsence(run, asking.askedAt)) return askedEarly(answer, run, asking);
  if (answer.kind === 'unclear' && run.doubt.lookups + 1 < asking.maxLookups)
    return askedAgain(answer.error, run, asking);
  if (answer.kind === 'unclear' && delivery === 'atMostOnce') return ended('unknown', failures, answer.error);
  // It had been there: what happened to it is unknown, and "not here" does not mean "never came".
  if (wasHandedOff && delivery === 'atMostOnce') return ended('unknown', failures, GONE);
  if (failures < retry.maxAttempts) return 'send';
  const error = answer.kind === 'unclear' ? answer.error : NOT_ARRIVED;
  return ended('failed', failures, error);
}

function askedEarly(answer: NoArrival, run: AttemptInDoubt, asking: Asking): Settlement {
  const { failures, doubt } = run;
  if (answer.kind === 'unclear' && doubt.lookups + 1 < asking.maxLookups) return askedAgain(answer.error, run, asking);
  const error = answer.kind === 'unclear' ? answer.error : NOT_YET;
  return {
    ...ended('pending', failures, error),
    retryAt: Math.max(asking.now, doubt.inDoubtUntil),
    doubt,
  };
}

function askedAgain(error: AttemptError, { failures, retry, doubt }: AttemptInDoubt, asking: Asking): Settlement {
  const lookups = doubt.lookups + 1;
  const retryAt = asking.now + backoffMs(retry, lookups, null, asking.random);
  return { ...ended('pending', failures, error), retryAt, doubt: { ...doubt, lookups } };
}

const GONE: AttemptError = {
  kind: 'expired',
  message: 'the target had accepted the run, and no longer knows of it',
};
const NOT_YET: AttemptError = {
  kind: 'network',
  message: 'the target has not received the last attempt yet; it is asked again once that attempt can no longer arrive',
};
const NOT_ARRIVED: AttemptError = {
  kind: 'network',
  message: 'the target did not receive the last attempt',
};
