import { randomInt } from 'node:crypto';
import { expect } from 'vitest';
import type { Role } from '../../../src/core/access/roles.ts';
import type { Scope } from '../../../src/core/access/scope.ts';
import { type ApiToken, createToken, tokenHash } from '../../../src/core/access/token.ts';
import type { Answer } from '../api.ts';

/** What the caller has, and what the daemon knows of it. */
export function newToken(name: string, role: Role, expiresAt: number | null = null, scope: Scope = null) {
  const secret = createToken((end) => randomInt(end));
  const known: ApiToken = { name, role, scope, hash: tokenHash(secret), expiresAt };
  return { secret, known, headers: { authorization: `Bearer ${secret}` } };
}

/** A clock that stands still until it is moved. */
export function settableClock(now = Date.UTC(2030, 0, 1)) {
  let moved = 0;
  return {
    now: () => now + moved,
    monotonic: () => moved,
    forward: (ms: number) => (moved += ms),
  };
}

/** The same, whatever is wrong with the token. */
export function expectUnauthorized(answer: Answer): void {
  expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  expect(answer.body).toEqual({
    type: 'about:blank',
    title: 'Unauthorized',
    status: 401,
    detail: 'this call needs a valid token: Authorization: Bearer TOKEN',
  });
}
