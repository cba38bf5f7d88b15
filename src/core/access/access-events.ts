import type { Instant } from '../instant.ts';
import type { Role } from './roles.ts';
import type { Scope } from './scope.ts';

/** What happens to callers and their tokens. */
export type AccessEvent =
  /** The API asks no caller for a token, and not only this machine can call. */
  | { type: 'openToAnybody'; host: string }
  /** Emitted at the start, and after each reading of the file of tokens. */
  | { type: 'tokensRead'; tokens: readonly TokenUse[] }
  /** The file of tokens was read again and has faults: the tokens stay as they were. */
  | { type: 'tokensKept'; faults: readonly string[] }
  /** The first use of a token since the start, or on a new day. */
  | { type: 'tokenUsed'; token: TokenUse }
  | CallRefused;

/** A call was answered with 401, 403 or 429. */
interface CallRefused {
  type: 'callRefused';
  reason: CallRefusal;
  address: string;
  /** The caller's, if it is known. */
  name: string | null;
  /** The header for which the call was refused, if it may be logged. */
  sent?: string;
  /** Its address has had many such refusals in the last minute. */
  isOneOfMany?: boolean;
}

/** What may be logged about a token; `hash`: the first digits of its hash, to distinguish tokens of one name. */
export interface TokenUse {
  name: string;
  role: Role;
  scope: Scope;
  hash: string;
  expiresAt: Instant | null;
  /** Counted since this process started. */
  lastUsedAt: Instant | null;
}

/**
 * 401: no token, a malformed one, a wrong checksum, an unknown one, an expired one, or a proxy that sent no usable name
 * of a user.
 */
export const FAILED_AUTHENTICATION = [
  'missing',
  'malformed',
  'mistyped',
  'unknown',
  'expired',
  'proxyHeaders',
] as const;

/**
 * 403 for every caller: without tokens, a Host that is not the server's, or the mark of a proxy; a change that a page of
 * another site asks for.
 */
export const BROWSER_REFUSALS = ['foreignHost', 'proxyMark', 'otherSite'] as const;

/**
 * Also 403: the role or the scope does not allow it; 429: too many failures from an address, or too many calls of a token, in a second or
 * under way, or too many bytes of answers that it has not read.
 */
export type CallRefusal =
  | (typeof FAILED_AUTHENTICATION)[number]
  | (typeof BROWSER_REFUSALS)[number]
  | 'role'
  | 'scope'
  | 'tooManyFailures'
  | 'tooManyCalls'
  | 'tooManyAtOnce'
  | 'tooMuchUnread';
