import { timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { IncomingHttpHeaders } from 'node:http';
import type { CallRefusal, TokenUse } from '../../core/access/access-events.ts';
import { type Instant, DAY_MS } from '../../core/instant.ts';
import { type ApiToken, tokenForm, tokenHash } from '../../core/access/token.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { type AddressRange, addressBytes, isInRange } from '../../config/address-ranges.ts';
import { type Caller, isCallerName, isRole } from '../../core/access/roles.ts';
import { type Scope, parseScope } from '../../core/access/scope.ts';

interface TokenRegistryDeps {
  clock: Clock;
  events: EventBus;
  tokens: readonly ApiToken[];
}

export interface TokenRegistry {
  /** The entry of the token that was sent, if it is known and has not expired. */
  find(sent: string): { token: ApiToken } | { refused: CallRefusal };
  findByHash(hash: Buffer): { token: ApiToken } | { refused: CallRefusal };
  /** What became of a token that was found before. */
  now(token: ApiToken): 'same' | 'changed' | 'unknown' | 'expired';
  /** From now on, a token that is not among these is refused. */
  replace(tokens: readonly ApiToken[]): void;
}

interface KnownToken extends ApiToken {
  lastUsedAt: Instant | null;
}

export function createTokenRegistry({ clock, events, tokens }: TokenRegistryDeps): TokenRegistry {
  let known: KnownToken[] = [];
  const replace = (present: readonly ApiToken[]) => {
    const before = known;
    known = present.map((token) => ({
      ...token,
      lastUsedAt: before.find(({ hash }) => hash.equals(token.hash))?.lastUsedAt ?? null,
    }));
    if (known.length > 0) events.emit({ type: 'tokensRead', tokens: known.map(useOf) });
  };
  replace(tokens);
  const findByHash: TokenRegistry['findByHash'] = (hash) => {
    const token = tokenWithHash(known, hash);
    const now = clock.now();
    if (token === null) return { refused: 'unknown' };
    if (token.expiresAt !== null && token.expiresAt <= now) return { refused: 'expired' };
    const isFirstOfDay = token.lastUsedAt === null || dayOf(token.lastUsedAt) !== dayOf(now);
    token.lastUsedAt = now;
    if (isFirstOfDay) events.emit({ type: 'tokenUsed', token: useOf(token) });
    return { token };
  };
  return {
    replace,
    findByHash,
    now: (token) => {
      const present = known.find(({ hash }) => hash.equals(token.hash));
      if (present === undefined) return 'unknown';
      if (present.expiresAt !== null && present.expiresAt <= clock.now()) return 'expired';
      return present.role === token.role && isDeepStrictEqual(present.scope, token.scope) ? 'same' : 'changed';
    },
    find: (sent) => {
      const form = tokenForm(sent);
      if (form !== 'token') return { refused: form === 'mistyped' ? 'mistyped' : 'malformed' };
      return findByHash(tokenHash(sent));
    },
  };
}

/** Compares with all of them, each in constant time: the duration says nothing about a hash. */
export function tokenWithHash<Token extends ApiToken>(tokens: readonly Token[], hash: Buffer): Token | null {
  let found: Token | null = null;
  for (const token of tokens) if (timingSafeEqual(token.hash, hash)) found = token;
  return found;
}

function dayOf(at: Instant): number {
  return Math.floor(at / DAY_MS);
}

function useOf({ name, role, scope, hash, expiresAt, lastUsedAt }: KnownToken): TokenUse {
  return { name, role, scope, hash: hash.toString('hex').slice(0, 8), expiresAt, lastUsedAt };
}

/** From proxies at these addresses, headers name the caller. From all others they mean nothing. */
export interface TrustedProxies {
  /** Null: the request names no user. */
  callerOf(address: string, headers: IncomingHttpHeaders): Caller | 'unusable' | null;
  isOne(address: string): boolean;
}

export function createTrustedProxies(ranges: readonly AddressRange[]): TrustedProxies {
  const isOne = (address: string) => {
    const bytes = addressBytes(address);
    return bytes !== null && ranges.some((range) => isInRange(bytes, range));
  };
  return {
    isOne,
    callerOf: (address, headers) => {
      const { 'x-firelock-user': name, 'x-firelock-role': role } = headers;
      if (name === undefined || !isOne(address)) return null;
      // A header that was sent twice comes as `a, b`, which is no name and no role: a proxy has to replace what a client sent.
      const isUsable = typeof name === 'string' && typeof role === 'string';
      const scope = scopeOf(headers['x-firelock-scope']);
      if (!isUsable || scope === undefined) return 'unusable';
      return isCallerName(name) && isRole(role) ? { name, role, scope } : 'unusable';
    },
  };
}

/** Undefined: it cannot be read. An empty one is refused: a proxy that found no group for a user must not give all names. */
function scopeOf(header: string | string[] | undefined): Scope | undefined {
  if (header === undefined) return null;
  return typeof header === 'string' ? (parseScope(header) ?? undefined) : undefined;
}
