import { type AttemptError, type Outcome, answerError } from '../core/runs/attempts/outcome.ts';
import type { LookupAnswer } from './target.ts';

/** What the answer to a lookup says about the attempt. Only a whole 404 says that it did not arrive. */
export function lookupAnswerOf(outcome: Outcome): LookupAnswer {
  switch (outcome.kind) {
    case 'accepted': {
      return { ...outcome, kind: 'arrived' };
    }
    case 'rejected': {
      const { statusCode } = outcome;
      if (statusCode === 404) return { kind: 'notArrived' };
      return unclear(answerError(statusCode));
    }
    case 'blocked':
    case 'transient':
    case 'unknown':
      return unclear(outcome.error);
  }
}

export function unclear(error: AttemptError): LookupAnswer {
  return { kind: 'unclear', error: { ...error, message: `lookup: ${error.message}` } };
}
