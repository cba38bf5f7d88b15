import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams, walked } from '../access/two-teams.ts';

const teams = twoTeams();
const { call, done, ids } = teams;
const target = { type: 'http', url: 'http://127.0.0.1:1/' };
const run = (key: string, limit: string) => done('all', 'POST', '/runs', { target, key, limit });

test(
  'a team lists, page by page, its own limits and what is shared, and nothing between them',
  { tags: [ATTACK] },
  async () => {
    for (const id of [
      'a.x',
      'billing.a',
      'billing.b',
      'billing.c',
      'billingx',
      'ops.a',
      'shared.l',
      'shared.m',
      'z',
    ])
      await done('all', 'PUT', `/limits/${id}`, { maxRunning: 5 });
    const own = ['billing.a', 'billing.b', 'billing.c', 'shared.l', 'shared.m'];
    expect(await ids('billing', '/limits')).toEqual(own);
    expect(await walked(teams, 'reader', '/limits?limit=2')).toEqual(own);
    expect(await ids('ops', '/limits')).toEqual(['ops.a', 'shared.l', 'shared.m']);
    expect(await ids('all', '/limits')).toHaveLength(9);
    const forged = Buffer.from(JSON.stringify({ after: 'ops.a' })).toString('base64url');
    expect(await ids('billing', `/limits?cursor=${forged}`)).toEqual(['shared.l', 'shared.m']);
  },
);

test('of a limit, only the runs that the caller sees are counted', { tags: [ATTACK] }, async () => {
  await done('all', 'PUT', '/limits/shared.l', { maxRunning: 5 });
  await done('all', 'PUT', '/limits/billing.l', { maxRunning: 5 });
  await run('billing.1', 'shared.l');
  for (const key of ['ops.1', 'ops.2', 'neither']) await run(key, 'shared.l');
  await run('ops.3', 'billing.l');
  const waiting = async (who: 'billing' | 'ops' | 'all', id: string) =>
    (await done(who, 'GET', `/limits/${id}`))['waiting'];
  expect(await waiting('billing', 'shared.l')).toBe(1);
  expect(await waiting('ops', 'shared.l')).toBe(2);
  expect(await waiting('all', 'shared.l')).toBe(4);
  expect(await waiting('billing', 'billing.l')).toBe(0);
  expect(await done('billing', 'PUT', '/limits/billing.l', { maxRunning: 6 })).toMatchObject({ waiting: 0 });
  const page = (await done('billing', 'GET', '/limits')) as unknown as { items: { id: string }[] };
  expect(page.items.find(({ id }) => id === 'shared.l')).toMatchObject({ waiting: 1 });
});

test(
  'a limit that others name is not deleted, and the answer does not name them',
  { tags: [ATTACK] },
  async () => {
    await done('all', 'PUT', '/limits/billing.named', { maxRunning: 1 });
    const schedule = (id: string) =>
      done('all', 'PUT', `/schedules/${id}`, { cron: '0 0 1 1 *', target, limit: 'billing.named' });
    await schedule('ops.foreign');
    const remove = async (who: 'billing' | 'all') =>
      (await call(who, 'DELETE', '/limits/billing.named')).body['detail'] as unknown as string;
    expect(await remove('billing')).toBe('the limit is named by others, outside of your scope');
    await schedule('billing.own');
    await run('ops.foreign-run', 'billing.named');
    expect(await remove('billing')).toBe(
      'the limit is named by schedules billing.own and by others, outside of your scope',
    );
    expect(await remove('all')).toContain('by schedules billing.own, ops.foreign and open runs ');
    await done('all', 'DELETE', '/schedules/ops.foreign');
  },
);
