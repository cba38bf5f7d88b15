import { OWN_SHORTAGES } from '../../own-resources.ts';
import type { Instant } from '../../instant.ts';

/** The result of one attempt: a value, never a throw. Each kind leads to one settlement (settlement.ts). */
export type Outcome = Accepted | Rejected | Transient | Unknown | Blocked;

/** The target acknowledged the run: it is handed off. */
export interface Accepted {
  kind: 'accepted';
  statusCode: number;
  body: string;
  /** The target's name for its execution, if it gave one. */
  executionId: string | null;
  /** What the target says about the work of an earlier attempt; absent: it was not asked, or did not say. */
  reported?: 'running' | 'succeeded' | 'failed';
  /** What does not hold of its whole answer, of what the schedule expects of a result; absent: all does, or nothing is expected. */
  resultFault?: string | null;
}

/** A permanent answer: another attempt would get the same. */
type Rejected = Answered | Unanswered;

interface Answered {
  kind: 'rejected';
  statusCode: number;
  body: string;
  /** The rule of the schedule that says so; absent: the status does. */
  error?: AttemptError;
}

/** Something came, so the target has the request, but no status could be read in it; or nothing can be sent. */
interface Unanswered {
  kind: 'rejected';
  statusCode: null;
  body: null;
  error: AttemptError;
}

/** The target did not take the run this time: provably not sent, or an answer that says "later". */
export interface Transient {
  kind: 'transient';
  error: AttemptError;
  statusCode: number | null;
  body: string | null;
  /** The wait that the target asked for (`Retry-After`). */
  retryAfterSeconds: number | null;
  /**
   * True if the target did not take the run, because a rule of the schedule says so, or it refused the access token: then it may be sent
   * again under at-most-once too.
   */
  byRule?: true;
  /** True if nothing was sent because the sender itself stopped: then the attempt does not count against `maxAttempts`. */
  senderStopped: boolean;
  /** What the sender lacked (core/own-resources.ts), so that it could not send; absent: nothing. */
  shortage?: string;
}

/** The request may have arrived, and no whole answer came. This is no failure: the outcome is unknown. */
export interface Unknown {
  kind: 'unknown';
  error: AttemptError;
  /** As above. */
  senderStopped: boolean;
}

/** Not sent: the operator forbids the address of the target. Another attempt would end in the same way. */
interface Blocked {
  kind: 'blocked';
  error: AttemptError;
}

export interface AttemptError {
  kind: 'http' | 'timeout' | 'network' | 'blocked' | 'expired' | 'dependency' | 'reported' | 'body';
  message: string;
  statusCode?: number;
}

/** Provably not sent. `senderStopped`: the target was not the reason. */
export function notSent(error: AttemptError, senderStopped = false): Transient {
  return { kind: 'transient', error, statusCode: null, body: null, retryAfterSeconds: null, senderStopped };
}

/** Not sent for want of something that the sender lacks: any other instance may send it. */
export function notSentForWant(shortage: string): Transient {
  const message = `not sent: ${OWN_SHORTAGES.get(shortage) ?? 'this instance lacks something'} (${shortage})`;
  return { ...notSent({ kind: 'network', message }, true), shortage };
}

/**
 * The same message for every address and reason: a user who may write a target must not learn from it which addresses
 * exist.
 */
export function blocked(): Blocked {
  return { kind: 'blocked', error: { kind: 'blocked', message: 'the address of the target is blocked' } };
}

/** An answer that is no 2xx, as an error. */
export function answerError(statusCode: number): AttemptError {
  return { kind: 'http', message: `the target answered ${statusCode}`, statusCode };
}

/** Why it was rejected. */
export function rejectionError(rejected: Omit<Answered, 'kind'> | Omit<Unanswered, 'kind'>): AttemptError {
  return rejected.statusCode === null ? rejected.error : (rejected.error ?? answerError(rejected.statusCode));
}

/** The target wants no more runs, unless a rule of the schedule says what a 410 means. */
export function isGone(outcome: Outcome): boolean {
  return outcome.kind === 'rejected' && outcome.statusCode === 410 && outcome.error === undefined;
}

/** What a status leads to: 408, 425, 429 and 5xx say "later"; all others but 2xx are final. */
export function classifyStatus(statusCode: number): 'accepted' | 'rejected' | 'transient' {
  if (statusCode >= 200 && statusCode < 300) return 'accepted';
  if (statusCode === 408 || statusCode === 425 || statusCode === 429) return 'transient';
  return statusCode >= 500 && statusCode < 600 ? 'transient' : 'rejected';
}

export type AttemptOutcome = 'accepted' | 'acceptedLate' | 'rejected' | 'transient' | 'unknown' | 'blocked';

/** The target's answer to the lookup about an earlier attempt, before anything else was done. */
export const LOOKUP_ANSWERS = ['arrived', 'notArrived', 'unclear'] as const;
export type LookedUp = (typeof LOOKUP_ANSWERS)[number];

/** One attempt as history shows it. */
export interface AttemptEntry {
  attempt: number;
  instanceId: string;
  startedAt: Instant;
  finishedAt: Instant;
  outcome: AttemptOutcome;
  statusCode: number | null;
  error: AttemptError | null;
  recovery: boolean;
  /** `arrived`: this time nothing was sent, and the outcome is the target's answer. Null: the target was not asked. */
  lookup: LookedUp | null;
}

/** How much of an answer, or of a reported end, is kept: bytes of UTF-8. */
const KEPT_TEXT_BYTES = 4096;

/** The beginning as text that PostgreSQL can store, at most KEPT_TEXT_BYTES of UTF-8. */
export function keptText(bytes: Buffer): string {
  if (bytes.length === 0) return '';
  const text = storable(bytes.toString('utf8', 0, KEPT_TEXT_BYTES));
  if (bytes.length <= KEPT_TEXT_BYTES && text.length * 3 <= KEPT_TEXT_BYTES) return text;
  // The cut may have split a character, and each invalid byte has become three.
  const whole = bytes.length > KEPT_TEXT_BYTES ? withoutSplitEnd(bytes) : text;
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(KEPT_TEXT_BYTES));
  return whole.slice(0, read);
}

/** Whether such a text may be a beginning only. */
export function mayBeCut(kept: string): boolean {
  return Buffer.byteLength(kept) > KEPT_TEXT_BYTES - MOST_BYTES_OF_CHARACTER;
}

const MOST_BYTES_OF_CHARACTER = 4;

/** PostgreSQL has no NUL in text; a cut may leave half of a surrogate pair. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function withoutSplitEnd(bytes: Buffer): string {
  return storable(
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, KEPT_TEXT_BYTES), {
      stream: true,
    }),
  );
}
