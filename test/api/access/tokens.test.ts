// @module-tag attack
import { expect, test } from 'vitest';
import { SCHEDULE, sharedApi } from '../api.ts';
import { expectUnauthorized, newToken, settableClock } from './support.ts';

const clock = settableClock();
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
