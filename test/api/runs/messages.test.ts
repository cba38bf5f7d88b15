import { sql } from 'drizzle-orm';
import { onTestFinished, expect, test } from 'vitest';
import { countOpenRuns } from '../../../src/store/reports/gauges.ts';
import { leaveMessages } from '../../support/messages.ts';
import { storeOfTest } from '../../support/of-test.ts';
import { SCHEDULE, startApi } from '../api.ts';

test('messages of notifiers are runs that say whose they are, and count in no figure of schedules', async () => {
  const store = await storeOfTest();
  const api = await startApi(store.url);
  onTestFinished(() => api.stop());
  await api.call('PUT', '/api/v1/schedules/job', SCHEDULE);
  const fired = await api.call('POST', '/api/v1/schedules/job/fire');
  expect(fired.body).toMatchObject({ trigger: 'manual', notifierId: null });
  const [id = ''] = await leaveMessages(store, { url: 'http://127.0.0.1:9', payload: '{"event":"opened"}' });

  const list = async (query: string) => {
    const { status, body } = await api.call('GET', `/api/v1/${query}`);
    expect(status).toBe(200);
    return body['items'];
  };
  const message = { id, name: null, scheduleId: null, scheduleVersion: null, notifierId: 'oncall' };
  expect(await list('runs?trigger=notify')).toMatchObject([{ ...message, payload: { event: 'opened' } }]);
  expect(await list('runs?trigger=notify&status=pending')).toMatchObject([message]);
  expect(await list('runs')).toHaveLength(2);
  expect(await list('runs?trigger=notify&scheduleId=job')).toEqual([]);
  expect((await api.call('GET', `/api/v1/runs/${id}`)).body).toMatchObject({
    ...message,
    target: { type: 'http' },
  });
  expect((await api.call('GET', '/api/v1/stats')).body).toMatchObject({ totalRuns: 1 });
  expect((await store.database.run(countOpenRuns)).values.byStatus).toMatchObject({ pending: 1 });

  // Whatever a worker says: its receiver alone knows.
  await store.rows(sql`UPDATE runs SET attempts = 1 WHERE id = ${id}`);
  for (const [word, body] of [
    ['complete', { status: 'succeeded' }],
    ['heartbeat', {}],
  ] as const)
    expect((await api.call('POST', `/api/v1/runs/${id}/${word}`, body)).status).toBe(409);
  expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).body).toMatchObject({ status: 'cancelled' });
  expect((await api.call('POST', `/api/v1/runs/${id}/retry`)).body).toMatchObject({
    status: 'pending',
    ...message,
  });
});
