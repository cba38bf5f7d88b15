// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MigratedDatabase, createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { type Api, startApi } from '../api.ts';
import { expectUnauthorized, newToken, settableClock } from './support.ts';

const clock = settableClock();
const ann = newToken('ann', 'operator', null, ['billing.']);
const bob = newToken('bob', 'viewer');
const tokens = [ann.known, bob.known];

/** Two instances of one installation. */
let database: MigratedDatabase;
let one: Api;
let two: Api;
beforeAll(async () => {
  database = await createMigratedDatabase();
  one = await startApi(database.url, { clock, apiTokens: tokens });
  two = await startApi(database.url, { clock, apiTokens: tokens });
});
afterAll(async () => {
  await two.stop();
  await one.stop();
  await database.drop();
});

const ME = '/api/v1/me';
const SESSION = '/api/v1/session';

/** What a browser sends back of what an answer set. */
function cookieOf({ headers }: { headers: Headers }): Record<string, string> {
  return { cookie: (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '' };
}
const logIn = (headers: Record<string, string> = ann.headers) =>
  one.call('POST', SESSION, undefined, headers);
const me = (at: Api, headers: Record<string, string>) => {
  clock.forward(60_000);
  return at.call('GET', ME, undefined, headers);
};

test('a cookie counts as the token of its login at every instance, with its role and scope, until it is logged out', async () => {
  const begun = await logIn();
  const whose = { name: 'ann', role: 'operator', scope: ['billing.'] };
  expect([begun.status, begun.body]).toEqual([200, whose]);
  expect(begun.headers.get('set-cookie')).toMatch(
    /^firelock_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  const cookie = cookieOf(begun);
  const other = cookieOf(await logIn());
  for (const at of [one, two]) {
    const answer = await me(at, { cookie: `theme=dark; ${cookie['cookie'] ?? ''}` });
    expect([answer.status, answer.body, answer.headers.get('set-cookie')]).toEqual([200, whose, null]);
  }
  expect((await two.call('GET', '/api/v1/audit', undefined, cookie)).status).toBe(200);
  expect((await two.call('PUT', '/api/v1/limits/billing.x', { maxRunning: 1 }, cookie)).status).toBe(403);
  // A token that is sent goes before it.
  expect((await me(one, { ...cookie, ...bob.headers })).body).toMatchObject({ name: 'bob' });
  expectUnauthorized(await me(one, { ...cookie, authorization: 'Bearer nonsense' }));

  const ended = await two.call('DELETE', SESSION, undefined, cookie);
  expect([ended.status, ended.headers.get('set-cookie')]).toEqual([
    204,
    'firelock_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
  ]);
  for (const at of [one, two]) expectUnauthorized(await me(at, cookie));
  expect((await me(two, other)).status).toBe(200);
});

test('it is renewed while it is used, and over twelve hours after its last use', async () => {
  const cookie = cookieOf(await logIn());
  const age = (seconds: number) =>
    one.sql`UPDATE sessions SET expires_at = clock_timestamp() + make_interval(secs => ${12 * 3600 - seconds})`;
  await age(11 * 3600);
  const renewed = await me(two, cookie);
  expect([renewed.status, cookieOf(renewed)]).toEqual([200, cookie]);
  expect((await me(one, cookie)).headers.get('set-cookie')).toBeNull();
  await age(12 * 3600);
  for (const at of [one, two]) expectUnauthorized(await me(at, cookie));
  await logIn();
  expect(await one.sql`SELECT FROM sessions`).toHaveLength(1);
});

test('it is over with its token: revoked or expired', async () => {
  const [gone, brief] = [newToken('gone', 'viewer'), newToken('brief', 'viewer', clock.now() + 600_000)];
  one.access.replaceTokens([...tokens, gone.known, brief.known]);
  const cookies = [cookieOf(await logIn(gone.headers)), cookieOf(await logIn(brief.headers))] as const;
  for (const cookie of cookies) expect((await me(one, cookie)).status).toBe(200);
  clock.forward(600_000);
  expectUnauthorized(await me(one, cookies[1]));
  one.access.replaceTokens(tokens);
  expectUnauthorized(await me(one, cookies[0]));
});

test('behind https the cookie is secure, and what it says is not in the database', async () => {
  const begun = await logIn({ ...ann.headers, origin: one.url.replace('http:', 'https:') });
  expect(begun.headers.get('set-cookie')).toMatch(/; Secure$/);
  const [, id = ''] = (cookieOf(begun)['cookie'] ?? '').split('=');
  const [stored] = await one.sql<{ text: string }[]>`SELECT string_agg(s::text, ' ') AS text FROM sessions s`;
  expect(stored?.text).toMatch(/^[^-]/);
  expect(stored?.text).not.toContain(id);
});

test('a page of another site changes nothing by it, and nobody guesses one', async () => {
  const cookie = cookieOf(await logIn());
  for (const foreign of [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])
    for (const [method, path] of [
      ['POST', '/api/v1/schedules/billing.a/fire'],
      ['DELETE', SESSION],
    ] as const)
      expect([method, (await one.call(method, path, undefined, { ...cookie, ...foreign })).status]).toEqual([
        method,
        403,
      ]);
  expect((await me(one, cookie)).status).toBe(200);
  const guess = { cookie: `firelock_session=${'A'.repeat(43)}` };
  expectUnauthorized(await me(one, guess));
  expectUnauthorized(await me(one, { cookie: 'firelock_session=short' }));
  const answers = [];
  for (let index = 0; index < 12; index += 1)
    answers.push((await one.call('GET', ME, undefined, guess)).status);
  expect(answers.slice(-2)).toEqual([429, 429]);
});

test('without a token there is nothing that a cookie could stand for', async () => {
  const open = await startApi(database.url);
  expect((await open.call('POST', SESSION)).status).toBe(409);
  expect((await open.call('DELETE', SESSION)).status).toBe(204);
  await open.stop();
});
