import { describe, expect, it } from 'vitest';
import { sharedApi } from '../api.ts';

const api = sharedApi();

const target = { type: 'http', url: 'http://127.0.0.1:1/' };
const put = (id: string, body: unknown) => api.call('PUT', `/api/v1/limits/${id}`, body);
const get = (id: string) => api.call('GET', `/api/v1/limits/${id}`);

describe('limits', () => {
  it('make admission look again when one is put, also as it was', async () => {
    for (const [description, status] of [
      ['new', 201],
      ['new', 200],
      ['other', 200],
    ] as const) {
      api.justWoken();
      expect((await put('woken', { maxRunning: 3, description })).status).toBe(status);
      expect(api.justWoken()).toMatchObject({ admission: 1 });
    }
  });

  it('that do not exist are refused if a schedule or run names them, each at its place', async () => {
    await put('known', { maxRunning: 1 });
    const schedule = { cron: '0 0 1 1 *', target };
    const one = await api.call('PUT', '/api/v1/schedules/s', { ...schedule, limit: 'nowhere' });
    expect(one.status).toBe(422);
    expect(paths(one.body)).toEqual(['/limit']);
    const runs = await api.call('POST', '/api/v1/runs/batch', {
      items: [
        { ref: 'a', target, limit: 'known' },
        { ref: 'b', target, limit: 'nowhere', dependsOn: ['019a9f00-0000-7000-8000-000000000000'] },
      ],
    });
    expect(runs.status).toBe(422);
    expect(paths(runs.body)).toEqual(['/items/1/dependsOn/0', '/items/1/limit']);
    expect(await api.call('POST', '/api/v1/runs', { target, limit: '' })).toMatchObject({ status: 400 });
    expect((await api.call('GET', '/api/v1/runs')).body).toMatchObject({ items: [] });
    expect((await api.call('GET', '/api/v1/schedules')).body).toMatchObject({ items: [] });
  });

  it('are not deleted while schedules or open runs name them, and the answer says which', async () => {
    await put('used', { maxRunning: 1 });
    const schedule = { cron: '0 0 1 1 *', target, limit: 'used' };
    expect(await api.call('PUT', '/api/v1/schedules/s', schedule)).toMatchObject({
      status: 201,
      body: { limit: 'used' },
    });
    const fired = await api.call('POST', '/api/v1/schedules/s/fire');
    expect(fired).toMatchObject({ status: 202, body: { limit: 'used', status: 'pending' } });
    const id = textOf(fired.body, 'id');
    expect((await get('used')).body).toMatchObject({ running: 0, waiting: 1 });
    const refused = await api.call('DELETE', '/api/v1/limits/used');
    expect(refused.status).toBe(409);
    expect(refused.body['detail']).toBe(`the limit is named by schedules s and open runs ${id}`);
    await api.call('PATCH', '/api/v1/schedules/s', { limit: null });
    expect(await api.call('GET', `/api/v1/runs/${id}`)).toMatchObject({ body: { limit: 'used' } });
    const again = await api.call('DELETE', '/api/v1/limits/used');
    expect(again.body['detail']).toBe(`the limit is named by open runs ${id}`);
    expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
    expect((await api.call('DELETE', '/api/v1/limits/used')).status).toBe(204);
    // Opened again, the run goes by its schedule, as that is now.
    expect(await api.call('POST', `/api/v1/runs/${id}/retry`)).toMatchObject({ body: { limit: null } });
  });

  it('that were deleted are missing for the retry of a one-off run that names them', async () => {
    await put('brief', { maxRunning: 1 });
    const body = { target, limit: 'brief', key: 'k', runAt: '2090-01-01T00:00:00Z' };
    const { body: run } = await api.call('POST', '/api/v1/runs', body);
    expect((await get('brief')).body).toMatchObject({ running: 0, waiting: 0 });
    expect(await api.call('POST', '/api/v1/runs', { ...body, limit: null })).toMatchObject({ status: 422 });
    const path = `/api/v1/runs/${textOf(run, 'id')}`;
    await api.call('POST', `${path}/cancel`);
    expect((await api.call('DELETE', '/api/v1/limits/brief')).status).toBe(204);
    expect(await api.call('POST', '/api/v1/runs', body)).toMatchObject({
      status: 200,
      body: { id: run['id'] },
    });
    const retried = await api.call('POST', `${path}/retry`);
    expect(retried).toMatchObject({
      status: 409,
      body: { detail: 'the limit of the run was deleted: brief' },
    });
    await put('brief', { maxRunning: 1 });
    expect(await api.call('POST', `${path}/retry`)).toMatchObject({
      status: 200,
      body: { status: 'pending', limit: 'brief' },
    });
  });
});

function textOf(body: unknown, field: string): string {
  return (body as Record<string, string>)[field] ?? '';
}

function paths(body: unknown): string[] {
  const { errors = [] } = body as { errors?: { path: string }[] };
  return errors.map(({ path }) => path).sort();
}
