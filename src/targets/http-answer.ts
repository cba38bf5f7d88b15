import type { Dispatcher } from 'undici';
import { parseRetryAfter } from '../core/http/answer-head.ts';
import type { Instant } from '../core/instant.ts';
import {
  type AttemptError,
  type Outcome,
  answerError,
  keptText,
  rejectionError,
  storable,
} from '../core/runs/attempts/outcome.ts';
import { answerFault, judge } from '../core/runs/attempts/outcome-rules.ts';
import type { SuccessBounds } from '../core/schedules/expect.ts';
import type { Delivery, OutcomeRules } from '../core/schedules/schedule.ts';
import type { LookupAnswer } from './target.ts';

/** How much of an answer's body is read. */
export const ANSWER_LIMIT_BYTES = 64 * 1024;
const EXECUTION_ID_LENGTH = 1024;

export type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

interface Answer {
  statusCode: number;
  headers: AnswerHeaders;
  /** Cut at ANSWER_LIMIT_BYTES. */
  body: Buffer;
  isDecoded: boolean;
}

/** How an answer is judged. */
export interface Judging {
  /** The target's own rules; null: it has none, or this is another call. */
  rules: OutcomeRules | null;
  delivery: Delivery;
  /** The answer to a lookup: it may say something about the work itself. */
  asked: boolean;
  /** What must hold of the result; null or absent: nothing, or this is another call. */
  expected?: SuccessBounds['result'];
}

/** The outcome of a whole answer. */
export function outcomeOf(answer: Answer, now: Instant, { rules, delivery, asked, expected = null }: Judging): Outcome {
  const { statusCode, headers } = answer;
  const body = keptText(answer.body);
  const verdict = judge(rules, answer, delivery);
  switch (verdict.kind) {
    case 'accepted': {
      const fields = jsonFields(answer.body);
      const reported = asked ? REPORTS.find((known) => known === fields.status) : undefined;
      const executionId = executionIdOf(headers, fields);
      const resultFault = expected && answerFault(expected, answer.isDecoded ? answer.body : null);
      return {
        kind: 'accepted',
        statusCode,
        body,
        executionId,
        ...(reported && { reported }),
        ...(resultFault !== null && { resultFault }),
      };
    }
    case 'rejected':
      return { kind: 'rejected', statusCode, body, ...(verdict.error && { error: verdict.error }) };
    case 'transient': {
      const retryAfter = firstValue(headers['retry-after']);
      return {
        kind: 'transient',
        error: verdict.error ?? answerError(statusCode),
        statusCode,
        body,
        retryAfterSeconds: retryAfter === undefined ? null : parseRetryAfter(retryAfter, now),
        senderStopped: false,
        ...(verdict.error && { byRule: true }),
      };
    }
  }
}

const REPORTS = ['running', 'succeeded', 'failed'] as const;

interface AnswerFields {
  executionId?: unknown;
  status?: unknown;
}

const NO_FIELDS: AnswerFields = {};

/** The body's `executionId`, or else the whole `Location` header. */
function executionIdOf(headers: AnswerHeaders, { executionId }: AnswerFields): string | null {
  const isNamed = typeof executionId === 'string' && executionId !== '';
  const id = isNamed ? executionId : firstValue(headers['location']);
  return id === undefined || id === '' ? null : storable(id.slice(0, EXECUTION_ID_LENGTH));
}

function jsonFields(body: Buffer): AnswerFields {
  if (body.length === 0) return NO_FIELDS;
  const text = body.toString().trimStart();
  if (!text.startsWith('{')) return {};
  try {
    return JSON.parse(text) as AnswerFields;
  } catch {
    return {};
  }
}

export function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** What the answer to a lookup says about the attempt. Only a whole 404 says that it did not arrive. */
export function lookupAnswerOf(outcome: Outcome): LookupAnswer {
  switch (outcome.kind) {
    case 'accepted': {
      return { ...outcome, kind: 'arrived' };
    }
    case 'rejected': {
      if (outcome.statusCode === 404) return { kind: 'notArrived' };
      return unclear(rejectionError(outcome));
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
