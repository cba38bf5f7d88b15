import { BodyTooLong } from '../core/http/body-template.ts';
import { type AttemptError, type Outcome, notSent, notSentForWant } from '../core/runs/attempts/outcome.ts';
import { ownShortageOf } from '../runtime/own-shortage.ts';
import { plainMessage } from './http-connect.ts';

interface Expiring {
  expire(): void;
}

/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function startDeadline(exchange: Expiring, leftMs: number): NodeJS.Timeout {
  return setTimeout(onDeadline, Math.min(leftMs, MAX_TIMER_MS), exchange);
}

/** By setImmediate, so that an answer which arrived while the loop was busy is read first. */
function onDeadline(exchange: Expiring): void {
  setImmediate(expire, exchange);
}

function expire(exchange: Expiring): void {
  exchange.expire();
}

export const LOST: AttemptError = {
  kind: 'network',
  message: 'the connection was lost after the request was sent',
};

/** The request may have arrived. */
export function unknown(error: AttemptError, senderStopped: boolean): Outcome {
  return { kind: 'unknown', error, senderStopped };
}

/** Provably not sent, by what this instance lacks or by what keeps the target from being reached. */
export function notSentBecause(error: Error, message = describeError(error)): Outcome {
  const shortage = ownShortageOf(error);
  return shortage === null ? notSent({ kind: 'network', message }) : notSentForWant(shortage);
}

export function cutShort(statusCode: number, error: Error): Outcome {
  const cut = statusCode >= 200 ? 'the answer was cut short' : 'the request was sent, and no answer came';
  return unknown({ kind: 'network', message: `${cut}: ${describeError(error)}` }, false);
}

export function notHttp(garbage: string): Outcome {
  const message = `what the target answered is not HTTP: ${JSON.stringify(garbage)}`;
  return rejectedUnanswered({ kind: 'network', message });
}

/** Another attempt would have the same body. */
export function notBuilt(error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof BodyTooLong) return rejectedUnanswered({ kind: 'body', message: reason });
  return notSent({ kind: 'network', message: `the request cannot be built: ${reason}` });
}

function rejectedUnanswered(error: AttemptError): Outcome {
  return { kind: 'rejected', statusCode: null, body: null, error };
}

function describeError(error: NodeJS.ErrnoException): string {
  const message = plainMessage(error);
  return error.code === undefined || message.includes(error.code) ? message : `${message} (${error.code})`;
}
