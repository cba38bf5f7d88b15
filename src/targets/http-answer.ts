import type { Dispatcher } from 'undici';
import type { Instant } from '../core/instant.ts';
import { type Outcome, answerError, classifyStatus } from '../core/outcome.ts';
import { parseRetryAfter } from '../core/retry-after.ts';

/** What is read of an answer's body. */
export const ANSWER_LIMIT_BYTES = 64 * 1024;
/** What is kept of it. */
const KEPT_BODY_BYTES = 4096;
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
  const body = keptBody(answer.body);
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

/** The beginning as text that PostgreSQL can store, at most KEPT_BODY_BYTES of UTF-8. */
function keptBody(body: Buffer): string {
  if (body.length === 0) return '';
  const text = storable(body.toString('utf8', 0, KEPT_BODY_BYTES));
  if (body.length <= KEPT_BODY_BYTES && text.length * 3 <= KEPT_BODY_BYTES) return text;
  // The cut may have split a character, and each invalid byte has become three.
  const whole = body.length > KEPT_BODY_BYTES ? withoutSplitEnd(body) : text;
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(KEPT_BODY_BYTES));
  return whole.slice(0, read);
}

function withoutSplitEnd(body: Buffer): string {
  return storable(
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(body.subarray(0, KEPT_BODY_BYTES), { stream: true }),
  );
}

/** PostgreSQL has no NUL in text; a cut may leave half of a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
