import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams, walked } from '../access/two-teams.ts';

const teams = twoTeams();
const { call, done, ids } = teams;
const put = (id: string) => done('all', 'PUT', `/calendars/${id}`, { dates: ['2030-12-25'] });
const target = { type: 'http', url: 'http://127.0.0.1:1/' };

test('a team lists its own calendars and what is shared, also of a search', { tags: [ATTACK] }, async () => {
  for (const id of ['billing.days', 'billing.free', 'ops.days', 'shared.days', 'days']) await put(id);
  expect(await walked(teams, 'reader', '/calendars?limit=1')).toEqual([
    'billing.days',
    'billing.free',
    'shared.days',
  ]);
  expect(await ids('ops', '/calendars?q=days')).toEqual(['ops.days', 'shared.days']);
  expect(await ids('billing', '/calendars?q=ops')).toEqual([]);
});

test(
  'a calendar that schedules of others exclude is not deleted, and the answer does not name them',
  { tags: [ATTACK] },
  async () => {
    await put('billing.used');
    const schedule = (id: string) =>
      done('all', 'PUT', `/schedules/${id}`, {
        ...{ cron: '0 0 1 1 *', target, exclude: { calendars: ['billing.used'] } },
      });
    await schedule('ops.job');
    const remove = async (who: 'billing' | 'all') =>
      (await call(who, 'DELETE', '/calendars/billing.used')).body['detail'];
    const last = ': change these schedules first';
    expect(await remove('billing')).toBe(`the calendar is excluded by others, outside of your scope${last}`);
    await schedule('billing.job');
    expect(await remove('billing')).toBe(
      `the calendar is excluded by billing.job and by others, outside of your scope${last}`,
    );
    expect(await remove('all')).toBe(`the calendar is excluded by billing.job, ops.job${last}`);
  },
);
