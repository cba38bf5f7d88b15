// @module-tag attack
// @module-tag long
import { expect, test } from 'vitest';
import { parseScopeShares } from '../../../src/core/access/scope.ts';
import { createRandom } from '../../chaos/random.ts';
import { CASES } from './cases.ts';
import { type Asked, type World, startTwins } from './twins.ts';
import { BILLING, OPS, type Team } from './worlds.ts';

/** Each team has nearly as many schedules and open runs as it may. */
const [SHARES] = parseScopeShares('billing.:13:24,ops.:9:16');
const CAP_REACHED = /names that begin with \S+ may have at most \d+ (?:schedules|open runs)/g;
const capsReached = new Set<string>();
// It names anything in its own things, and finds them later.
const twins = startTwins(() => true, SHARES);
const CALLS = 1500;
const SEEDS = [1, 2, 3];

/** Beginnings of names: of both teams and of all, and what is near them. */
const PREFIXES = [
  ...'billing. billing bill b Billing. BILLING. billing.. billing.never. billing- bílling.'.split(' '),
  ...['ops.', 'ops', 'o', 'Ops.', 'ops..', 'ops-', 'opsbilling.', 'ops.billing.', 'ops%', '_ps.', 'οps.'],
  ...['shared.', 'shared', 'shared..', 'Shared.', 'shared.billing.', 'billing.shared.'],
];
/** It may do whatever can be undone; what takes things away would soon leave nothing to ask about. */
const ROUTES = Object.keys(CASES).filter((route) => !route.startsWith('DELETE'));
/** Figures of the moments at which its own runs were claimed. */
const UNSTEADY = ['GET /stats', 'GET /schedules/{id}/stats'];

test.for(SEEDS)('random calls of ops are answered as if there were no billing: seed %i', async (seed) => {
  const random = createRandom(seed, 'scopes');
  const before = twins.billing;
  const statuses = new Map<number, number>();
  for (let n = 0; n < CALLS; n += 1) {
    const route = random.pick(ROUTES.filter((name) => !UNSTEADY.includes(name)));
    const caller = random.pick([...OPS, ...OPS.slice(-2), ...OPS.slice(-2)]);
    const call = randomCall(random, route);
    const { status, text } = await twins.ask(caller, call);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    for (const [cap] of text.matchAll(CAP_REACHED)) capsReached.add(cap);
    if (below(random, 5) === 0) await billingActs(random, before);
  }
  for (const status of [200, 400, 403, 404, 422]) expect([...statuses.keys()]).toContain(status);
  expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
});

test('among those calls were some that a cap refused', () => {
  expect([...capsReached].toSorted()).toEqual([
    'names that begin with ops. may have at most 16 open runs',
    'names that begin with ops. may have at most 9 schedules',
  ]);
});

type Random = ReturnType<typeof createRandom>;

/** Decided before it is asked, so that both installations get the same. */
function randomCall(random: Random, route: string): (world: World) => Asked {
  const prefix = random.pick(PREFIXES) as Team['prefix'];
  const whose = random.pick(['billing', 'ops', 'shared'] as const);
  const [one, other] = [below(random, 1_000), below(random, 1_000)];
  const headers = randomHeaders(random);
  return (world) => {
    const { runs } = whose === 'billing' ? twins.billing : world[whose];
    const cases = CASES[route]?.(prefix, runs) ?? [];
    const first = cases[one % cases.length] ?? {};
    const second = cases[other % cases.length] ?? {};
    const [method = '', path = ''] = route.split(' ');
    // The place of one, and what another one says.
    const body = first.body === undefined ? undefined : other % 3 === 0 ? second.body : first.body;
    return { method, path: encodeURI(first.at ?? path), body, headers: { ...first.headers, ...headers } };
  };
}

function randomHeaders(random: Random): Record<string, string> {
  const version = below(random, 4);
  return random.pick([{}, {}, { 'if-match': `"${version}"` }, { 'idempotency-key': `billing.k${version}` }]);
}

/** What ops asks next must not tell of it. */
async function billingActs(random: Random, { prefix, runs }: Team): Promise<void> {
  const route = random.pick(ROUTES.filter((name) => !name.startsWith('GET')));
  const cases = CASES[route]?.(prefix, runs) ?? [];
  if (cases.length === 0) return;
  const [method = '', path = ''] = route.split(' ');
  const { at = path, body, headers } = random.pick(cases);
  const { status } = await twins.both.api.call(method, `/api/v1${at}`, body, {
    ...BILLING.headers,
    ...headers,
  });
  expect([method, at, status >= 500]).toEqual([method, at, false]);
}

function below(random: Random, end: number): number {
  return Math.floor(random.between(0, end));
}
