// @module-tag attack
// @module-tag long
import { expect, test } from 'vitest';
import { CASES } from './cases.ts';
import { type Caller, type World, startTwins } from './twins.ts';
import { OPS, type Team } from './worlds.ts';

// The audit has what ops was refused, with the names that it gave.
const twins = startTwins((path) => path.startsWith('/audit'));

/** Names that a call may give. What never was has ids like those of what is there. */
const GIVEN: Record<string, (world: World) => Team> = {
  'what billing has': () => twins.billing,
  'what never was': () => ({
    prefix: 'billing.never.' as 'billing.',
    runs: { never: '0195a1b2-a800-7000-8000-000000000000', other: '01b2c3d4-a800-7abc-8000-00000000beef' },
  }),
  'what all may name': ({ shared }) => shared,
  'its own': ({ ops }) => ops,
};
const ROUTES = Object.keys(CASES);
/** What takes things away comes last. */
const IN_ORDER = ROUTES.toSorted((a, b) => rank(a) - rank(b));

function rank(route: string): number {
  if (route.startsWith('GET')) return 0;
  return route.startsWith('DELETE') ? 2 : 1;
}

test('every route of the API has its place in this walk', async () => {
  const { body } = await twins.both.api.call('GET', '/openapi.json');
  const routes = Object.entries(body['paths'] ?? {}).flatMap(([path, methods]) =>
    path.startsWith('/api/v1')
      ? Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace('/api/v1', '')}`)
      : [],
  );
  expect(routes.toSorted()).toEqual(ROUTES.toSorted());
});

// One after the other: what one call changes, the next ones see, in both installations.
for (const [what, given] of Object.entries(GIVEN)) {
  test(`no answer about ${what} depends on what billing has`, async () => {
    const before = await twins.rowsOfBilling();
    const statuses = new Set<number>();
    for (const route of IN_ORDER)
      for (const caller of OPS) for (const status of await askAll(route, caller, given)) statuses.add(status);
    for (const status of [200, 404, 422]) expect(statuses).toContain(status);
    expect(statuses).not.toContain(500);
    expect(await twins.rowsOfBilling()).toEqual(before);
  });
}

/** Answers the statuses. A role that may not call the route is refused once. */
async function askAll(route: string, caller: Caller, given: (world: World) => Team): Promise<number[]> {
  const statuses: number[] = [];
  const callsOf = (world: World) => {
    const { prefix, runs } = given(world);
    return CASES[route]?.(prefix, runs) ?? [];
  };
  const [method = '', path = ''] = route.split(' ');
  for (const n of callsOf(twins.both).keys()) {
    const { status } = await twins.ask(caller, (world) => {
      const { at = path, ...more } = callsOf(world)[n] ?? {};
      return { method, path: at, ...more };
    });
    statuses.push(status);
    if (status === 403 && caller !== OPS.at(-1)) break;
  }
  return statuses;
}
