import { randomInt } from 'node:crypto';
import { expect } from 'vitest';
import type { Role } from '../../../src/core/access/roles.ts';
import type { Scope } from '../../../src/core/access/scope.ts';
import { type ApiToken, createToken, tokenHash } from '../../../src/core/access/token.ts';
import { type Answer, type Api, type Json, sharedApi } from '../api.ts';

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

const TOKENS = {
  all: newToken('everything', 'admin'),
  billing: newToken('billing-admin', 'admin', null, ['billing.']),
  ops: newToken('ops-admin', 'admin', null, ['ops.']),
  reader: newToken('billing-reader', 'viewer', null, ['billing.']),
  caller: newToken('fires-all', 'operator'),
  outsider: newToken('reads-all', 'viewer'),
  platform: newToken('platform-admin', 'admin', null, ['shared.']),
} as const;
export type Teammate = keyof typeof TOKENS;

interface TwoTeams {
  api: Api;
  call: (who: Teammate, method: string, path: string, body?: unknown) => Promise<Answer>;
  /** It must succeed. */
  done: (who: Teammate, method: string, path: string, body?: unknown) => Promise<Json>;
  /** Ids of a list. */
  ids: (who: Teammate, path: string) => Promise<string[]>;
}

/** An API with two teams, billing. and ops., and with what is shared. */
export function twoTeams(options: Parameters<typeof sharedApi>[0] = {}): TwoTeams {
  const api = sharedApi({ ...options, apiTokens: Object.values(TOKENS).map(({ known }) => known) });
  const call: TwoTeams['call'] = (who, method, path, body) =>
    api.call(method, `/api/v1${path}`, body, TOKENS[who].headers);
  const done: TwoTeams['done'] = async (who, method, path, body) => {
    const answer = await call(who, method, path, body);
    expect([method, path, answer.status < 300 ? 'done' : answer.text]).toEqual([method, path, 'done']);
    return answer.body;
  };
  const ids: TwoTeams['ids'] = async (who, path) => idsIn(await done(who, 'GET', path));
  return { api, call, done, ids };
}

function idsIn(page: Json): string[] {
  return (page['items'] as unknown as { id: string }[]).map(({ id }) => id);
}

/** Walks a list page by page, and answers the ids. */
export async function walked({ done }: TwoTeams, who: Teammate, path: string): Promise<string[]> {
  const all: string[] = [];
  for (let cursor = ''; ;) {
    const page = await done(who, 'GET', `${path}${cursor}`);
    all.push(...idsIn(page));
    const next = page['nextCursor'] as unknown as string | null;
    if (next === null) return all;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}
