// @module-tag attack
import { expect, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Json, sharedApi } from '../api/api.ts';
import { until } from '../support/until.ts';

const eve = newToken('eve', 'worker');
const bob = newToken('bob', 'admin');
const MOST_QUEUES = 256;

const api = sharedApi({ apiTokens: [eve.known, bob.known], tokenRequestsPerSecond: 10_000 });

const claim = async (who: typeof eve, queue: string) => {
  const answer = await api.call('POST', `/api/v1/queues/${queue}/claim`, { workerId: 'w' }, who.headers);
  expect(answer.status).toBe(200);
  return answer.body['items'] as unknown as Json[];
};
const listed = async () => {
  const { body } = await api.call('GET', '/api/v1/queues', undefined, bob.headers);
  return (body['items'] as unknown as { queue: string; workers: number }[]).map(({ queue }) => queue);
};

test('a caller that claims of nearly three hundred made-up queues fills no table, and hides no worker of another', async () => {
  for (let count = 0; count < 280; count += 20)
    await Promise.all(Array.from({ length: 20 }, (_, index) => claim(eve, `made-up-${count + index}`)));
  await claim(bob, 'mail');
  await until(async () => ((await listed()).includes('mail') ? true : null));
  expect(await api.sql`SELECT FROM queue_workers`).toHaveLength(MOST_QUEUES + 1);
  // What it may not name is served all the same, as soon as there are runs.
  const target = { type: 'pull', queue: 'made-up-279' };
  expect((await api.call('POST', '/api/v1/runs', { target }, bob.headers)).status).toBe(201);
  expect(await claim(eve, 'made-up-279')).toHaveLength(1);
});

test('the workers that did not ask for ten minutes are found by an index', async () => {
  await api.sql`BEGIN`;
  await api.sql`SET LOCAL enable_seqscan = off`;
  const plan = await api.sql`EXPLAIN SELECT queue, worker_id FROM queue_workers
    WHERE seen_at < (SELECT clock_timestamp() - interval '10 minutes') ORDER BY seen_at LIMIT 10`;
  await api.sql`COMMIT`;
  expect(JSON.stringify(plan)).toContain('queue_workers_seen');
});
