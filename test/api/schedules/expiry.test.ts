import { expect, test } from 'vitest';
import { SCHEDULE, TARGET, faultPaths, quietApi } from '../api.ts';

const api = quietApi();
const path = '/api/v1/schedules/brief';
const HOUR = { expiresAfterSeconds: 3600 };

test('a schedule answers its expiresAfterSeconds, keeps it through an edit, and loses it by null', async () => {
  const put = await api.call('PUT', path, { ...SCHEDULE, ...HOUR });
  expect([put.status, put.body['expiresAfterSeconds']]).toEqual([201, 3600]);
  const edited = await api.call('PATCH', path, { description: 'brief' });
  expect(edited.body).toMatchObject({ version: 2, ...HOUR });
  const back = await api.call('PUT', path, edited.body);
  expect([back.status, back.body['version']]).toEqual([200, 2]);
  const fired = await api.call('POST', `${path}/fire`);
  const { scheduledFor, expiresAt } = fired.body as unknown as Record<string, string>;
  expect(Date.parse(expiresAt ?? '') - Date.parse(scheduledFor ?? '')).toBe(3_600_000);
  const reset = await api.call('PATCH', path, { expiresAfterSeconds: null });
  expect(reset.body['expiresAfterSeconds']).toBeNull();
  expect((await api.call('POST', `${path}/fire`)).body['expiresAt']).toBeNull();
  const versions = await api.call('GET', `${path}/versions`);
  const [newest, oldest] = versions.body['items'] as unknown as { schedule: unknown }[];
  expect([newest?.schedule, oldest?.schedule]).toMatchObject([{ expiresAfterSeconds: null }, HOUR]);
});

test('a one-off run expires so long after its runAt, and another bound is another body of its key', async () => {
  const runAt = '2040-01-01T00:00:00.000Z';
  const body = { target: TARGET, key: 'once', runAt, ...HOUR };
  const accepted = await api.call('POST', '/api/v1/runs', body);
  expect([accepted.status, accepted.body['expiresAt']]).toEqual([201, '2040-01-01T01:00:00.000Z']);
  expect((await api.call('POST', '/api/v1/runs', body)).status).toBe(200);
  expect((await api.call('POST', '/api/v1/runs', { ...body, expiresAfterSeconds: 60 })).status).toBe(422);
});

test.each([0, 31 * 86_400 + 1, 1.5, '60'])('it is refused where it is %j', async (expiresAfterSeconds) => {
  const calls = [
    await api.call('PUT', path, { ...SCHEDULE, expiresAfterSeconds }),
    await api.call('PATCH', path, { expiresAfterSeconds }),
    await api.call('POST', '/api/v1/runs', { target: TARGET, expiresAfterSeconds }),
  ];
  for (const refused of calls)
    expect([refused.status, faultPaths(refused)]).toEqual([400, ['/expiresAfterSeconds']]);
});
