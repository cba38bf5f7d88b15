import { stringifyJson } from '../json-text.ts';
import type { Reply } from './store.ts';

/** Thrown by the work: not now. firelock tries again, at the earliest after `seconds`. */
export class Later extends Error {
  override readonly name = 'Later';
  readonly seconds: number;

  constructor(seconds: number, message = 'later') {
    super(message);
    this.seconds = seconds;
  }
}

/** Thrown by the work: never. The run ends as failed, without another attempt. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** `{}` where there is nothing to say. firelock keeps the first 4 KiB, and takes `executionId` of an object. */
export function replyOf(status: number, result: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { ...JSON_TYPE, ...headers }, body: stringifyJson(result ?? {}) };
}

export function errorReply(status: number, error: string, headers?: Record<string, string>): Reply {
  return replyOf(status, { error }, headers);
}

/** Another process works on the run, as far as the store knows: to be asked about again. */
export function busyReply(): Reply {
  return errorReply(503, 'another process is working on the run', { 'retry-after': '5' });
}

/** What firelock is told of work that did not succeed: anything but Refused is tried again. */
export function failureReply(error: unknown): Reply {
  if (error instanceof Refused) return errorReply(422, error.message);
  if (error instanceof Later) {
    return errorReply(503, error.message, { 'retry-after': String(Math.ceil(error.seconds)) });
  }
  return errorReply(500, messageOf(error));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
