import type { Instant } from '../instant.ts';
import type { Role } from './roles.ts';

/** What happens to callers and their tokens. */
export type AccessEvent =
  /** No caller is asked for a token, and not only this machine can call. */
  | { type: 'openToAnybody'; host: string }
  /** At the start, and whenever the file of tokens was read again. */
  | { type: 'tokensRead'; tokens: readonly TokenUse[] }
  /** The file of tokens was to be read again, and has faults: the tokens stay what they were. */
  | { type: 'tokensKept'; faults: readonly string[] }
  /** The first use of a token since the start, or on a day. */
  | { type: 'tokenUsed'; token: TokenUse }
  /** A call was answered with 401, 403 or 429. `name`: of the caller, if it is known. */
  | { type: 'callRefused'; reason: CallRefusal; address: string; name: string | null };

/** What may be said of a token; `hash`: the first digits of its hash, to tell tokens of one name apart. */
export interface TokenUse {
  name: string;
  role: Role;
  hash: string;
  expiresAt: Instant | null;
  /** Since this process started. */
  lastUsedAt: Instant | null;
}

/** 401: no token, a malformed one, a wrong checksum, an unknown one, an expired one, or a proxy that names no user we can use. */
export const FAILED_AUTHENTICATION = [
  'missing',
  'malformed',
  'mistyped',
  'unknown',
  'expired',
  'proxyHeaders',
] as const;

/** Also 403: the role may not; 429: too many failures of an address, or too many calls of a token. */
export type CallRefusal =
  (typeof FAILED_AUTHENTICATION)[number] | 'role' | 'tooManyFailures' | 'tooManyCalls';
