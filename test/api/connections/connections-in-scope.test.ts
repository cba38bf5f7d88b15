import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams } from '../access/two-teams.ts';

const { call, done } = twoTeams();
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
        expect.stringMatching(
          /^the connection is named by others, outside of your scope(, whose own header|$)/,
        ),
      ]);
    }
    await schedule('billing.job');
    for (const [method, path, body] of tries) {
      const detail = (await call('billing', method, path, body)).body['detail'];
      expect(detail).toMatch(/named by schedules billing\.job and by others, outside of your scope/);
      expect((await call('all', method, path, body)).body['detail']).toMatch(
        /named by schedules billing\.job, ops\.job and open runs [\da-f-]{36} and notifiers ops\.told/,
      );
    }
  },
);
