import { expect, test } from 'vitest';
import { ATTACK } from '../../support/runner/attack.ts';
import { sharedApi } from '../api.ts';

const api = sharedApi();

const connect = (id: string, url: string) => api.call('PUT', `/api/v1/connections/${id}`, { url });

/** A one-off run that ended before it was sent; far ahead, so that nothing else happens to it. */
async function cancelled(connection: string, headers: Record<string, string> = {}): Promise<string> {
  const target = { type: 'http', connection, url: '/x', headers };
  const { body } = await api.call('POST', '/api/v1/runs', { target, runAt: '2099-01-01T00:00:00Z' });
  const id = body['id'] as unknown as string;
  expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
  return id;
}

async function retried(id: string) {
  const { status, body } = await api.call('POST', `/api/v1/runs/${id}/retry`);
  return [status, body['detail']];
}

test('a one-off run is not opened again once its connection is gone', async () => {
  await connect('left', 'https://a.example');
  const id = await cancelled('left');
  expect((await api.call('DELETE', '/api/v1/connections/left')).status).toBe(204);
  expect(await retried(id)).toEqual([
    409,
    expect.stringContaining('the connection of the run was deleted: left'),
  ]);
});

test(
  'its own header values do not follow a connection that goes elsewhere now, one by one or in bulk',
  { tags: [ATTACK] },
  async () => {
    await connect('moved', 'https://a.example');
    const [sending, bare] = [await cancelled('moved', { 'X-Key': 'secret' }), await cancelled('moved')];
    expect((await connect('moved', 'https://a.example/v2')).status).toBe(200);
    await api.call('DELETE', '/api/v1/connections/moved');
    await connect('moved', 'https://evil.example');
    expect(await retried(sending)).toEqual([
      409,
      expect.stringContaining(
        'the connection moved goes elsewhere now, and the run has header values of its own',
      ),
    ]);
    expect((await retried(bare))[0]).toBe(200);
    const again = { action: 'retry', filter: { status: 'cancelled', from: '2098-01-01T00:00:00Z' } };
    expect((await api.call('POST', '/api/v1/runs/bulk', again)).body).toMatchObject({ changed: 0 });
  },
);
