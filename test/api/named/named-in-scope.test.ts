// @module-tag attack
import { describe, expect, test } from 'vitest';
import { type Teammate, twoTeams, walked } from '../access/support.ts';
import { THINGS } from './things.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import type { Answer } from '../api.ts';

const teams = twoTeams({ takesSecretFiles: true });
const { call, done, ids } = teams;

/** Of both teams, of all, and of nobody: between, before and after those that billing sees. */
const NAMES = [...['a.x', 'billing.a', 'billing.b', 'billing.c', 'billingx', 'ops.a', 'shared.l', 'shared.m', 'z']];
const SEEN = ['billing.a', 'billing.b', 'billing.c', 'shared.l', 'shared.m'];

describe.each(THINGS)('of $list a team', ({ list, definitions: [, plain] }) => {
  test('lists its own and what is shared, page by page, and nothing between them', async () => {
    for (const id of NAMES) await done('all', 'PUT', `/${list}/${id}`, plain);
    expect(await ids('all', `/${list}`)).toEqual(NAMES);
    expect(await ids('billing', `/${list}`)).toEqual(SEEN);
    for (const limit of [1, 2]) expect(await walked(teams, 'reader', `/${list}?limit=${limit}`)).toEqual(SEEN);
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
    const named = async (who: 'billing' | 'all') => (await call(who, 'DELETE', `/${list}/billing.used`)).body['detail'];
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

describe('a limit', () => {
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
    expect(await done('billing', 'PUT', '/limits/billing.l', { maxRunning: 6 })).toMatchObject({
      waiting: 0,
    });
    const page = (await done('billing', 'GET', '/limits')) as unknown as { items: { id: string }[] };
    expect(page.items.find(({ id }) => id === 'shared.l')).toMatchObject({ waiting: 1 });
  });
});

describe('a connection', () => {
  const put = (id: string, url = 'http://127.0.0.1:1') => done('all', 'PUT', `/connections/${id}`, { url });

  test(
    'a connection that others name is neither moved nor deleted, and no answer names them',
    { tags: [ATTACK] },
    async () => {
      await put('billing.held');
      const target = { type: 'http', connection: 'billing.held', url: '/', headers: { 'x-key': 'k' } };
      const schedule = (id: string) => done('all', 'PUT', `/schedules/${id}`, { cron: '0 0 1 1 *', target });
      await schedule('ops.job');
      await done('all', 'PUT', '/notifiers/ops.told', { channel: { type: 'webhook', target } });
      await done('all', 'POST', '/notifiers/ops.told/test');
      const tries = [
        ['DELETE', '/connections/billing.held', undefined],
        ['PUT', '/connections/billing.held', { url: 'http://127.0.0.2:1' }],
        ['POST', '/connections/billing.held/dry-run', { url: 'http://127.0.0.2:1' }],
      ] as const;
      for (const [method, path, body] of tries) {
        const { status, body: problem } = await call('billing', method, path, body);
        expect([status, problem['detail']]).toEqual([
          409,
          expect.stringMatching(/^the connection is named by others, outside your scope(, whose own header|$)/),
        ]);
      }
      await schedule('billing.job');
      for (const [method, path, body] of tries) {
        const detail = (await call('billing', method, path, body)).body['detail'];
        expect(detail).toMatch(/named by schedules billing\.job and by others, outside your scope/);
        expect((await call('all', method, path, body)).body['detail']).toMatch(
          /named by schedules billing\.job, ops\.job and open runs [\da-f-]{36} and notifiers ops\.told/,
        );
      }
    },
  );

  test(
    'a team names only secret files of its own, and shared ones; what somebody else named it may leave there',
    { tags: [ATTACK] },
    async () => {
      const url = 'http://127.0.0.1:1';
      const of = (file: string) => ({ url, auth: { type: 'bearer', token: { file } } });
      for (const path of ['/connections/billing.files', '/connections/billing.files/dry-run']) {
        const method = path.endsWith('dry-run') ? 'POST' : 'PUT';
        for (const file of ['ops/db-password', 'ops.token', 'billing']) {
          const { status, body } = await call('billing', method, path, of(file));
          expect([file, status, body['errors']]).toEqual([
            file,
            422,
            [expect.objectContaining({ path: '/auth/token' })],
          ]);
        }
      }
      await done('billing', 'PUT', '/connections/billing.files', of('billing.token'));
      await done('billing', 'PUT', '/connections/billing.files', of('shared.token'));
      await done('all', 'PUT', '/connections/billing.files', of('ops.token'));
      await done('billing', 'PUT', '/connections/billing.files', { ...of('ops.token'), description: 'mine' });
      const elsewhere = { url, headers: { 'X-Key': { file: 'ops.token' } } };
      expect((await call('billing', 'PUT', '/connections/billing.files', elsewhere)).status).toBe(422);
    },
  );

  test(
    'what is sent through a connection outside of the scope stays as it is, unless the target names another connection',
    { tags: [ATTACK] },
    async () => {
      await put('ops.system');
      await put('billing.system');
      const target = { type: 'http', connection: 'ops.system', url: '/report' };
      await done('all', 'PUT', '/schedules/billing.through', { cron: '0 0 1 1 *', target });
      const patch = (change: object) => call('billing', 'PATCH', '/schedules/billing.through', change);
      for (const [field, value] of [
        ['url', '/delete'],
        ['method', 'DELETE'],
        ['headers', { 'X-Do': 'it' }],
        ['body', 'payload'],
        ['lookup', { url: '/delete' }],
        ['cancel', { url: '/delete' }],
      ] as const) {
        const { status, body } = await patch({ target: { [field]: value } });
        expect([field, status, body['errors']]).toEqual([
          field,
          422,
          [expect.objectContaining({ path: `/target/${field}` })],
        ]);
      }
      expect((await patch({ description: 'mine', cron: '0 1 1 1 *' })).status).toBe(200);
      expect((await patch({ target: { connection: 'billing.system', url: '/delete' } })).status).toBe(200);

      const channel = { type: 'webhook', target };
      await done('all', 'PUT', '/notifiers/billing.told', { channel, filter: { ids: ['billing.*'] } });
      const told = {
        channel: { ...channel, target: { ...target, url: '/other' } },
        filter: { ids: ['billing.*'] },
      };
      const { status, body } = await call('billing', 'PUT', '/notifiers/billing.told', told);
      expect([status, body['errors']]).toEqual([422, [expect.objectContaining({ path: '/channel/target/url' })]]);
    },
  );
});

describe('a notifier', () => {
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

  test('a notifier names what its team sees; what others have does not exist for it', { tags: [ATTACK] }, async () => {
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
  });

  test('a circle of fallbacks is refused without the names of others in it', { tags: [ATTACK] }, async () => {
    await done('all', 'PUT', '/notifiers/billing.ring', body());
    await done('all', 'PUT', '/notifiers/ops.ring', body({ fallback: 'billing.ring' }));
    await done('all', 'PUT', '/notifiers/shared.ring', body({ fallback: 'ops.ring' }));
    expect(await faults('billing', 'billing.ring', body({ fallback: 'shared.ring', ...OWN }))).toEqual([
      { path: '/fallback', message: 'makes a cycle: billing.ring → shared.ring → … → billing.ring' },
    ]);
  });

  test('a team tests its own notifiers, and neither shared ones nor those of others', { tags: [ATTACK] }, async () => {
    for (const id of ['billing.t', 'ops.t', 'shared.t']) await done('all', 'PUT', `/notifiers/${id}`, body());
    const tested = async (id: string) => (await call('billing', 'POST', `/notifiers/${id}/test`)).status;
    expect(await Promise.all(['billing.t', 'shared.t', 'ops.t'].map(tested))).toEqual([202, 403, 404]);
  });
});
