import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams } from '../access/two-teams.ts';

const { done } = twoTeams();
const target = { type: 'http', url: 'http://127.0.0.1:1/' };
const run = (key: string, limit: string) => done('all', 'POST', '/runs', { target, key, limit });

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
