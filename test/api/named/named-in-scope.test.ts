// @module-tag attack
import { describe, expect, test } from 'vitest';
import { twoTeams, walked } from '../access/two-teams.ts';
import { THINGS } from './things.ts';

const teams = twoTeams();
const { call, done, ids } = teams;

/** Of both teams, of all, and of nobody: between, before and after those that billing sees. */
const NAMES = [
  ...['a.x', 'billing.a', 'billing.b', 'billing.c', 'billingx', 'ops.a', 'shared.l', 'shared.m', 'z'],
];
const SEEN = ['billing.a', 'billing.b', 'billing.c', 'shared.l', 'shared.m'];

describe.each(THINGS)('of $list a team', ({ list, definitions: [, plain] }) => {
  test('lists its own and what is shared, page by page, and nothing between them', async () => {
    for (const id of NAMES) await done('all', 'PUT', `/${list}/${id}`, plain);
    expect(await ids('all', `/${list}`)).toEqual(NAMES);
    expect(await ids('billing', `/${list}`)).toEqual(SEEN);
    for (const limit of [1, 2])
      expect(await walked(teams, 'reader', `/${list}?limit=${limit}`)).toEqual(SEEN);
    expect(await ids('ops', `/${list}`)).toEqual(['ops.a', 'shared.l', 'shared.m']);
    const forged = Buffer.from(JSON.stringify({ after: 'ops.a' })).toString('base64url');
    expect(await ids('billing', `/${list}?cursor=${forged}`)).toEqual(['shared.l', 'shared.m']);
    expect(await ids('ops', `/${list}?q=.`)).toEqual(['ops.a', 'shared.l', 'shared.m']);
    expect(await ids('billing', `/${list}?q=ops`)).toEqual([]);
  });
});

describe.each(THINGS)('of $list one', ({ list, definitions: [, plain], namers, word }) => {
  test('that others name is not deleted, and the answer does not name them', async () => {
    await done('all', 'PUT', `/${list}/billing.used`, plain);
    const named = async (who: 'billing' | 'all') =>
      (await call(who, 'DELETE', `/${list}/billing.used`)).body['detail'];
    const refusal = (by: string) => `the ${word} is named by ${by}`;
    const foreign: string[] = [];
    for (const { method, path, body } of namers) {
      const id = `ops.${list}`;
      const made = await done('all', method, path(id), body('billing.used', id));
      foreign.push(made['id'] as unknown as string);
      expect(await named('billing')).toBe(refusal('others, outside your scope'));
    }
    const [{ kind, method, path, body }] = namers;
    const own = `billing.${list}`;
    await done('all', method, path(own), body('billing.used', own));
    const mine = `${kind} ${own}`;
    expect(await named('billing')).toBe(refusal(`${mine} and by others, outside your scope`));
    const others = namers.slice(1).map((namer, n) => `${namer.kind} ${foreign[n + 1] ?? ''}`);
    expect(await named('all')).toBe(refusal([`${mine}, ${foreign[0] ?? ''}`, ...others].join(' and ')));
  });
});
