// @module-tag long
import { expect, it } from 'vitest';
import { eachTest, databaseOfTest } from '../support/of-test.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

const database = eachTest(databaseOfTest);

interface Items {
  items: {
    id: string;
    attempts: number;
    workerId: string;
    queue: string;
    workers: number;
    scheduleId: string;
  }[];
}

const claim = async (daemon: Daemon, body: object) => {
  const answer = await daemon.call('POST', '/api/v1/queues/work/claim', body);
  expect(answer.status).toBe(200);
  return (answer.body as Items).items;
};
const waits = (daemon: Daemon) =>
  until(async () => {
    const { body } = await daemon.call('GET', '/api/v1/queues');
    return (body as Items).items.some(({ queue, workers }) => queue === 'work' && workers > 0) || null;
  });
const target = { type: 'pull', queue: 'work' };

it('a worker that waits at one daemon gets what another records, and what a schedule fires', async () => {
  const one = await readyDaemon(database.url);
  const other = await readyDaemon(database.url);
  const first = claim(one, { workerId: 'w', waitSeconds: 60 });
  await waits(one);
  const recorded = await other.call('POST', '/api/v1/runs', { target });
  expect(await first).toMatchObject([{ id: (recorded.body as { id: string }).id, attempts: 1, workerId: 'w' }]);

  const second = claim(one, { workerId: 'w', waitSeconds: 60 });
  const put = await other.call('PUT', '/api/v1/schedules/pulled', { everySeconds: 1, target });
  expect(put.status).toBe(201);
  expect(await second).toMatchObject([{ scheduleId: 'pulled', workerId: 'w' }]);
});

it('a daemon that stops answers the workers that wait at it, and keeps their leases', async () => {
  const one = await readyDaemon(database.url);
  const recorded = await one.call('POST', '/api/v1/runs', { target });
  const { id } = recorded.body as { id: string };
  expect(await claim(one, { workerId: 'w', leaseSeconds: 3600 })).toMatchObject([{ id }]);
  const waiting = claim(one, { workerId: 'w', waitSeconds: 60 });
  await waits(one);
  one.signal('SIGTERM');
  expect(await waiting).toEqual([]);
  expect(await one.exited).toBe(0);

  const next = await readyDaemon(database.url);
  const word = { status: 'succeeded', attempt: 1, workerId: 'w' };
  expect(await next.call('POST', `/api/v1/runs/${id}/heartbeat`, { workerId: 'w', progress: 0.5 })).toMatchObject({
    status: 200,
    body: { status: 'running', progress: 0.5 },
  });
  expect(await next.call('POST', `/api/v1/runs/${id}/complete`, word)).toMatchObject({
    status: 200,
    body: { status: 'succeeded', attempts: 1, recoveries: 0, failures: 0 },
  });
});

it('a run whose lease runs out is claimed again', async () => {
  const daemon = await readyDaemon(database.url);
  const retry = { maxAttempts: 3, minBackoffSeconds: 1, maxBackoffSeconds: 1 };
  const recorded = await daemon.call('POST', '/api/v1/runs', { target, retry });
  const { id } = recorded.body as { id: string };
  expect(await claim(daemon, { workerId: 'silent', leaseSeconds: 1 })).toMatchObject([{ id, attempts: 1 }]);
  expect(await claim(daemon, { workerId: 'next', waitSeconds: 60 })).toMatchObject([
    { id, attempts: 2, failures: 1, workerId: 'next' },
  ]);
  const metrics = await daemon.call('GET', '/metrics');
  expect(metrics.body).toContain('firelock_handoffs_total{target="pull",outcome="accepted"} 2');
});
