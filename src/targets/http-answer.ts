import type { Dispatcher } from 'undici';
import type { Instant } from '../core/instant.ts';
import { keptText, storable } from '../core/kept-text.ts';
import { type Outcome, answerError, classifyStatus } from '../core/outcome.ts';
import { parseRetryAfter } from '../core/retry-after.ts';

/** What is read of an answer's body. */
export const ANSWER_LIMIT_BYTES = 64 * 1024;
const EXECUTION_ID_LENGTH = 1024;

export type AnswerHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

export interface Answer {
  statusCode: number;
  headers: AnswerHeaders;
  /** Cut at ANSWER_LIMIT_BYTES. */
  body: Buffer;
}

/** What a whole answer means, by its status. */
export function outcomeOf(answer: Answer, now: Instant): Outcome {
  const { statusCode, headers } = answer;
  const body = keptText(answer.body);
  switch (classifyStatus(statusCode)) {
    case 'accepted':
      return { kind: 'accepted', statusCode, body, executionId: executionIdOf(answer) };
    case 'rejected':
      return { kind: 'rejected', statusCode, body };
    case 'transient': {
      const retryAfter = firstValue(headers['retry-after']);
      return {
        kind: 'transient',
        error: answerError(statusCode),
        statusCode,
        body,
        retryAfterSeconds: retryAfter === undefined ? null : parseRetryAfter(retryAfter, now),
        senderStopped: false,
      };
    }
  }
}

/** The body's `executionId`, or else the `Location` header whole. */
function executionIdOf({ headers, body }: Answer): string | null {
  const id = executionIdInJson(body) ?? firstValue(headers['location']);
  return id === undefined || id === '' ? null : storable(id.slice(0, EXECUTION_ID_LENGTH));
}

function executionIdInJson(body: Buffer): string | undefined {
  const text = body.toString().trimStart();
  if (!text.startsWith('{')) return undefined;
  try {
    const { executionId } = JSON.parse(text) as { executionId?: unknown };
    return typeof executionId === 'string' && executionId !== '' ? executionId : undefined;
  } catch {
    return undefined;
  }
}

function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
