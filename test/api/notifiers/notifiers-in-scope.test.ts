import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import type { Answer } from '../api.ts';
import { type Teammate, twoTeams } from '../access/two-teams.ts';

const { call, done } = twoTeams();
const HOOK = { type: 'http', url: 'https://hooks.example/x' };
const body = (more: object = {}) => ({ channel: { type: 'webhook', target: HOOK }, ...more });
const telling = (...patterns: string[]) => body({ filter: { ids: patterns } });
const OWN = { filter: { ids: ['billing.*'] } };

const faultsOf = ({ body: problem }: Answer): unknown => problem['errors'];

/** What PUT and its dry-run answer: the same, of faults. */
async function faults(who: Teammate, id: string, sent: object): Promise<unknown> {
  const [put, dryRun] = [
    await call(who, 'PUT', `/notifiers/${id}`, sent),
    await call(who, 'POST', `/notifiers/${id}/dry-run`, sent),
  ];
  expect([put.status, dryRun.status]).toEqual([422, 422]);
  expect(faultsOf(dryRun)).toEqual(faultsOf(put));
  return faultsOf(put);
}

test('the notifier of a team tells only of schedules that the team sees', { tags: [ATTACK] }, async () => {
  const within = 'is outside your scope (billing.)';
  expect(await faults('billing', 'billing.told', body())).toEqual([
    { path: '/filter/ids', message: `must name what it tells of: everything ${within}` },
  ]);
  const patterns = ['billing.*', '*', 'b*', 'ops.job', 'billing.job', 'shared.*', 'share*', 'ops.*'];
  expect(await faults('billing', 'billing.told', telling(...patterns))).toEqual(
    [1, 2, 3, 6, 7].map((place) => ({ path: `/filter/ids/${place}`, message: within })),
  );
  const labelled = { filter: { ids: [], label: ['team:billing'] } };
  expect(await faults('billing', 'billing.told', body(labelled))).toHaveLength(1);
  await done('billing', 'PUT', '/notifiers/billing.told', telling('billing.*', 'billing.job', 'shared.x*'));
  await done('all', 'PUT', '/notifiers/everything', body());
});

test(
  'who has no scope may let a notifier of a team tell of all; the team then does not change where it tells it',
  { tags: [ATTACK] },
  async () => {
    await done('all', 'PUT', '/notifiers/billing.wide', body());
    const elsewhere = { channel: { type: 'webhook', target: { ...HOOK, url: 'https://mine.example/' } } };
    expect(await faults('billing', 'billing.wide', { ...body(), ...elsewhere })).toHaveLength(1);
    await done('billing', 'PUT', '/notifiers/billing.wide', { ...elsewhere, ...OWN });
  },
);

test(
  'a notifier names what its team sees; what others have does not exist for it',
  { tags: [ATTACK] },
  async () => {
    for (const id of ['ops.last', 'shared.last']) await done('all', 'PUT', `/notifiers/${id}`, body());
    for (const id of ['ops.crm', 'shared.crm'])
      await done('all', 'PUT', `/connections/${id}`, { url: 'https://crm.example' });
    const by = (connection: string) => ({
      channel: { type: 'webhook', target: { type: 'http', connection, url: '/' } },
    });
    const named = (fallback: string, connection: string) => ({ ...by(connection), fallback, ...OWN });
    const missing = (fallback: string, connection: string) => [
      {
        path: '/channel/target/connection',
        message: `names a connection that does not exist: ${connection}`,
      },
      { path: '/fallback', message: `names a notifier that does not exist: ${fallback}` },
    ];
    for (const [fallback, connection] of [
      ['ops.last', 'ops.crm'],
      ['billing.none', 'billing.none'],
    ] as const)
      expect(await faults('billing', 'billing.names', named(fallback, connection))).toEqual(
        missing(fallback, connection),
      );
    await done('billing', 'PUT', '/notifiers/billing.names', named('shared.last', 'shared.crm'));
    // What somebody without a scope has put there may stay.
    await done('all', 'PUT', '/notifiers/billing.names', named('ops.last', 'ops.crm'));
    await done('billing', 'PUT', '/notifiers/billing.names', {
      ...named('ops.last', 'ops.crm'),
      description: 'ours',
    });
  },
);

test('a circle of fallbacks is refused without the names of others in it', { tags: [ATTACK] }, async () => {
  await done('all', 'PUT', '/notifiers/billing.ring', body());
  await done('all', 'PUT', '/notifiers/ops.ring', body({ fallback: 'billing.ring' }));
  await done('all', 'PUT', '/notifiers/shared.ring', body({ fallback: 'ops.ring' }));
  expect(await faults('billing', 'billing.ring', body({ fallback: 'shared.ring', ...OWN }))).toEqual([
    { path: '/fallback', message: 'makes a cycle: billing.ring → shared.ring → … → billing.ring' },
  ]);
});

test(
  'a team tests its own notifiers, and neither shared ones nor those of others',
  { tags: [ATTACK] },
  async () => {
    for (const id of ['billing.t', 'ops.t', 'shared.t']) await done('all', 'PUT', `/notifiers/${id}`, body());
    const tested = async (id: string) => (await call('billing', 'POST', `/notifiers/${id}/test`)).status;
    expect(await Promise.all(['billing.t', 'shared.t', 'ops.t'].map(tested))).toEqual([202, 403, 404]);
  },
);
