import { describe, expect, test } from 'vitest';
import { type FetchedToken, type TokenClient, NoToken, OAuthTokens } from '../../../src/targets/login/oauth-tokens.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { tokenClient } from './clients.ts';

const client = tokenClient();

describe('an access token', () => {
  test('is fetched once for all who wait, and then at hand', async () => {
    const { tokens, fetches, answer } = tokenServer();
    const waiting = Array.from({ length: 100 }, () => Promise.resolve(tokens.get(client)));
    answer('t-1');
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['t-1']));
    expect(tokens.get(client)).toBe('t-1');
    expect(fetches).toHaveLength(1);
  });

  test.each([
    ['an hour', 3600, 3540],
    ['ten minutes', 600, 540],
    ['100 s', 100, 90],
    ['no time at all', 0, 1],
    ['a time that the server does not say', null, 270],
  ])('that lives for %s is kept until shortly before its end', async (_, lifetimeSeconds, kept) => {
    const { tokens, clock, fetches, answer } = tokenServer();
    const first = tokens.get(client);
    answer('t-1', lifetimeSeconds);
    await first;
    clock.add(kept * 1000 - 1);
    expect(tokens.get(client)).toBe('t-1');
    clock.add(1);
    const second = tokens.get(client);
    answer('t-2');
    expect(await second).toBe('t-2');
    expect(fetches).toHaveLength(2);
  });

  test('lives from the moment at which it was asked for', async () => {
    const { tokens, clock, answer } = tokenServer();
    const first = tokens.get(client);
    clock.add(9_000);
    answer('t-1', 100);
    await first;
    clock.add(81_000);
    expect(tokens.get(client)).toBeInstanceOf(Promise);
  });

  test.each([
    ['another connection', { uid: 'u-2' }],
    ['a changed connection', { version: 2 }],
    ['a rotated secret', { auth: { ...client.auth, clientSecret: 'rotated' } }],
  ])('is not used by %s', async (_, change) => {
    const { tokens, fetches, answer } = tokenServer();
    const first = tokens.get(client);
    answer('t-1');
    await first;
    const other = tokens.get({ ...client, ...change });
    answer('t-2');
    expect(await other).toBe('t-2');
    expect(tokens.get(client)).toBe('t-1');
    expect(fetches).toHaveLength(2);
  });
});

describe('a refused token', () => {
  test('is fetched anew, once for a herd that was refused', async () => {
    const { tokens, fetches, answer } = tokenServer();
    const first = tokens.get(client);
    answer('t-1');
    await first;
    const refused = Array.from({ length: 100 }, () => {
      tokens.invalidate(client, 't-1');
      return Promise.resolve(tokens.get(client));
    });
    answer('t-2');
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['t-2']));
    // Late ones, which were sent with the old token.
    tokens.invalidate(client, 't-1');
    expect(tokens.get(client)).toBe('t-2');
    expect(fetches).toHaveLength(2);
  });

  test('is not fetched anew at each attempt, if the target refuses every token', { tags: [ATTACK] }, async () => {
    const { tokens, clock, fetches, answer } = tokenServer();
    const first = tokens.get(client);
    answer('t-1');
    await first;
    for (const next of ['t-2', 't-3', 't-4']) {
      tokens.invalidate(client, await tokens.get(client));
      const renewed = tokens.get(client);
      answer(next);
      expect(await renewed).toBe(next);
      for (let i = 0; i < 100; i++) {
        tokens.invalidate(client, next);
        expect(tokens.get(client)).toBe(next);
      }
      clock.add(10_000);
    }
    expect(fetches).toHaveLength(4);
  });
});

describe('a token server that fails', { tags: [ATTACK] }, () => {
  test('is asked once for all who wait, and then left in peace for a growing while', async () => {
    const { tokens, clock, fetches, fail } = tokenServer();
    for (const restMs of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      const waiting = Array.from({ length: 100 }, () => Promise.resolve(tokens.get(client)));
      fail('down');
      const errors = await Promise.allSettled(waiting);
      expect(new Set(errors.map(({ status }) => status))).toEqual(new Set(['rejected']));
      clock.add(restMs - 1);
      expect(() => tokens.get(client)).toThrow(new NoToken('down'));
      clock.add(1);
    }
    expect(fetches).toHaveLength(6);
  });

  test('is asked at once for a changed connection', async () => {
    const { tokens, answer, fail } = tokenServer();
    const first = tokens.get(client);
    fail('wrong id');
    await expect(first).rejects.toThrow('wrong id');
    const second = tokens.get({ ...client, version: 2 });
    answer('t-1');
    expect(await second).toBe('t-1');
  });

  test('begins anew with short rests after a success, or a long time', async () => {
    const { tokens, clock, fetches, answer, fail } = tokenServer();
    const failed = async () => {
      const asked = tokens.get(client);
      fail('down');
      await expect(asked).rejects.toThrow('down');
    };
    await failed();
    clock.add(2_000);
    await failed();
    clock.add(4_000 + 4_000);
    await failed();
    clock.add(2_000);
    const asked = tokens.get(client);
    answer('t-1');
    expect(await asked).toBe('t-1');
    clock.add(300_000);
    await failed();
    clock.add(2_000);
    expect(tokens.get(client)).toBeInstanceOf(Promise);
    expect(fetches).toHaveLength(6);
  });
});

test('no more tokens are kept than a thousand: those that were used longest ago go', { tags: [ATTACK] }, async () => {
  const { tokens, fetches, answer } = tokenServer();
  for (let version = 0; version <= 1_000; version++) {
    const asked = tokens.get({ ...client, version });
    answer(`t-${version}`);
    await asked;
    expect(tokens.get({ ...client, version: 0 })).toBe('t-0');
  }
  expect(tokens.get({ ...client, version: 1 })).toBeInstanceOf(Promise);
  expect(fetches).toHaveLength(1_002);
});

/** Answers to the fetch that is under way are told. */
function tokenServer() {
  let now = 0;
  const clock = { monotonic: () => now, add: (ms: number) => (now += ms) };
  const fetches: TokenClient[] = [];
  let underWay = Promise.withResolvers<FetchedToken>();
  const fetch = (of: TokenClient) => {
    fetches.push(of);
    underWay = Promise.withResolvers();
    return underWay.promise;
  };
  return {
    tokens: new OAuthTokens({ fetch, clock }),
    clock,
    fetches,
    answer: (token: string, lifetimeSeconds: number | null = null) => underWay.resolve({ token, lifetimeSeconds }),
    fail: (message: string) => underWay.reject(new NoToken(message)),
  };
}
