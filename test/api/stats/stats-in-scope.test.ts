// @module-tag attack
import { expect, test } from 'vitest';
import { newToken } from '../access/support.ts';
import { SCHEDULE, quietApi } from '../api.ts';

const billing = newToken('billing', 'operator', null, ['billing.']);
const many = newToken('many', 'viewer', null, ['m.']);
const admin = newToken('admin', 'admin');
const api = quietApi({ apiTokens: [billing, many, admin].map(({ known }) => known) });

type Caller = typeof admin;
const as = (caller: Caller, method: string, path: string, body?: unknown) =>
  api.call(method, `/api/v1${path}`, body, caller.headers);
const figures = async (caller: Caller, path: string) => {
  const { status, body } = await as(caller, 'GET', path);
  return [status, body['totalRuns'], body['cancelledRuns']];
};

async function schedule(id: string, fires: number): Promise<void> {
  await as(admin, 'PUT', `/schedules/${id}`, SCHEDULE);
  for (let fire = 0; fire < fires; fire += 1) await as(admin, 'POST', `/schedules/${id}/fire`);
}

test('the figures are of the runs that a scope sees: those of its schedules, and its one-off runs', async () => {
  await schedule('billing.a', 2);
  await schedule('ops.a', 3);
  await schedule('shared.a', 1);
  for (const key of ['billing.once', 'shared.once', 'ops.once', null]) {
    const { body } = await as(admin, 'POST', '/runs', {
      target: { type: 'http', url: 'http://127.0.0.1:9/' },
      key,
    });
    await as(admin, 'POST', `/runs/${body['id'] as unknown as string}/cancel`);
  }
  expect(await figures(admin, '/stats')).toEqual([200, 10, 4]);
  expect(await figures(billing, '/stats')).toEqual([200, 5, 2]);
  expect(await figures(billing, '/stats?to=2000-01-01T00:00:00Z')).toEqual([200, 0, 0]);
  expect(await figures(billing, '/schedules/billing.a/stats')).toEqual([200, 2, 0]);
  expect(await figures(billing, '/schedules/shared.a/stats')).toEqual([200, 1, 0]);
  expect((await figures(billing, '/schedules/ops.a/stats'))[0]).toBe(404);
});

test('and of a scope with very many schedules', async () => {
  await as(admin, 'POST', '/schedules/batch', {
    items: Array.from({ length: 120 }, (_, n) => ({ id: `m.${n}`, ...SCHEDULE })),
  });
  for (const id of ['m.0', 'm.119']) await schedule(id, 2);
  await schedule('n.0', 1);
  expect(await figures(many, '/stats')).toEqual([200, 4 + 1 + 1, 1]);
});
