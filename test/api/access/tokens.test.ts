// @module-tag attack
import { expect, test, describe } from 'vitest';
import { type Api, startApi, SCHEDULE, sharedApi } from '../api.ts';
import { expectUnauthorized, newToken, settableClock } from './support.ts';

const clock = settableClock();
const ann = newToken('ann', 'operator', null, ['billing.']);
const bob = newToken('bob', 'viewer');
const tokens = [ann.known, bob.known];

/** Two instances of one installation. */
const one = sharedApi({ clock, apiTokens: tokens });
const two = sharedApi({ clock, apiTokens: tokens }, one);

const ME = '/api/v1/me';
const SESSION = '/api/v1/session';

/** What a browser sends back of what an answer set. */
function cookieOf({ headers }: { headers: Headers }): Record<string, string> {
  return { cookie: (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '' };
}
const logIn = (headers: Record<string, string> = ann.headers) => one.call('POST', SESSION, undefined, headers);
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
  for (let index = 0; index < 12; index += 1) answers.push((await one.call('GET', ME, undefined, guess)).status);
  expect(answers.slice(-2)).toEqual([429, 429]);
});

test('without a token there is nothing that a cookie could stand for', async () => {
  const open = await startApi(one.databaseUrl);
  expect((await open.call('POST', SESSION)).status).toBe(409);
  expect((await open.call('DELETE', SESSION)).status).toBe(204);
  await open.stop();
});

describe('a token', () => {
  const HOUR = 3_600_000;
  const admin = newToken('ann', 'admin');
  const old = newToken('ci', 'operator', clock.now() + HOUR);
  const next = newToken('ci', 'viewer');
  const PATH = '/api/v1/schedules';

  const api = sharedApi({ clock, apiTokens: [admin.known, old.known, next.known] });

  const get = (headers: Record<string, string>) => api.call('GET', PATH, undefined, headers);
  const as = (authorization: string) => {
    clock.forward(60_000);
    return get({ authorization });
  };

  test('whatever is wrong with a token, the answer is the same', async () => {
    const mistyped = admin.secret.slice(0, -1) + (admin.secret.endsWith('x') ? 'y' : 'x');
    for (const authorization of [
      `Bearer ${newToken('ann', 'admin').secret}`,
      `Bearer ${mistyped}`,
      `Bearer ${admin.secret} ${admin.secret}`,
      `Bearer ${admin.known.hash.toString('hex')}`,
      'Bearer',
      'Bearer ',
      admin.secret,
      `Basic ${Buffer.from(`ann:${admin.secret}`).toString('base64')}`,
      `Bearer ${'x'.repeat(8000)}`,
    ]) {
      expectUnauthorized(await as(authorization));
    }
    clock.forward(60_000);
    expectUnauthorized(await api.call('GET', `${PATH}?access_token=${admin.secret}`));
    // The name of the scheme is written in any letter case.
    expect((await as(`bearer ${admin.secret}`)).status).toBe(200);
  });

  test('a name can have several tokens during a rotation; an expired or removed token is refused at once', async () => {
    const [one, two] = [newToken('turn', 'viewer', clock.now() + HOUR), newToken('turn', 'viewer')];
    const { known } = admin;
    api.access.replaceTokens([known, one.known, two.known]);
    for (const { headers } of [one, two, admin]) expect((await get(headers)).status).toBe(200);
    clock.forward(HOUR - 1);
    expect((await get(one.headers)).status).toBe(200);
    clock.forward(1);
    expectUnauthorized(await get(one.headers));
    expect((await get(two.headers)).status).toBe(200);
    api.access.replaceTokens([known]);
    clock.forward(60_000);
    expectUnauthorized(await get(two.headers));
    api.access.replaceTokens([]);
    clock.forward(60_000);
    expectUnauthorized(await get(admin.headers));
    expectUnauthorized(await get({}));
    api.access.replaceTokens([known, next.known]);
  });

  test('a version names the caller who wrote it', async () => {
    const bob = newToken('bob', 'admin');
    api.access.replaceTokens([admin.known, bob.known]);
    const path = `${PATH}/written`;
    const changed = { ...SCHEDULE, description: 'changed' };
    for (const [method, to, body, by] of [
      ['PUT', path, SCHEDULE, admin],
      ['PATCH', path, { description: 'patched' }, bob],
      ['POST', `${PATH}/batch`, { items: [{ id: 'written', ...changed }] }, admin],
      ['POST', `${PATH}/written/skip`, { fireAt: '2096-02-29T12:00:00Z' }, bob],
      ['POST', `${PATH}/bulk`, { action: 'pause', filter: { q: 'written' } }, bob],
      ['POST', `${PATH}/bulk`, { action: 'resume', filter: { q: 'written' } }, admin],
    ] as const) {
      expect((await api.call(method, to, body, by.headers)).status).toBeLessThan(300);
    }
    expect(await api.sql`SELECT by FROM skips`).toEqual([{ by: 'bob' }]);
    expect((await api.call('DELETE', path, undefined, bob.headers)).status).toBe(204);
    const { body } = await api.call('GET', `${path}/versions`, undefined, admin.headers);
    const versions = body['items'] as unknown as { change: string; by: string }[];
    expect(versions.map(({ change, by }) => [change, by])).toEqual([
      ['deleted', 'bob'],
      ['updated', 'ann'],
      ['updated', 'bob'],
      ['updated', 'ann'],
      ['updated', 'bob'],
      ['created', 'ann'],
    ]);
  });
});
