import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams } from '../access/two-teams.ts';

const { call, done } = twoTeams({ takesSecretFiles: true });
const put = (id: string, url = 'http://127.0.0.1:1') => done('all', 'PUT', `/connections/${id}`, { url });

test(
  'a connection that others name is neither moved nor deleted, and no answer names them',
  { tags: [ATTACK] },
  async () => {
    await put('billing.used');
    const target = { type: 'http', connection: 'billing.used', url: '/', headers: { 'x-key': 'k' } };
    const schedule = (id: string) => done('all', 'PUT', `/schedules/${id}`, { cron: '0 0 1 1 *', target });
    await schedule('ops.job');
    await done('all', 'PUT', '/notifiers/ops.told', { channel: { type: 'webhook', target } });
    await done('all', 'POST', '/notifiers/ops.told/test');
    const tries = [
      ['DELETE', '/connections/billing.used', undefined],
      ['PUT', '/connections/billing.used', { url: 'http://127.0.0.2:1' }],
      ['POST', '/connections/billing.used/dry-run', { url: 'http://127.0.0.2:1' }],
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
    expect([status, body['errors']]).toEqual([
      422,
      [expect.objectContaining({ path: '/channel/target/url' })],
    ]);
  },
);
