// @module-tag attack
import { expect, test } from 'vitest';
import { newToken } from '../access/support.ts';
import { type Answer, type Json, quietApi } from '../api.ts';

const billing = newToken('billing', 'operator', null, ['billing.']);
const worker = newToken('billing-worker', 'worker', null, ['billing.']);
const ops = newToken('ops', 'operator', null, ['ops.']);
const admin = newToken('admin', 'admin');
const api = quietApi({ apiTokens: [billing, worker, ops, admin].map(({ known }) => known) });

type Caller = typeof admin;
const as = (caller: Caller, method: string, path: string, body?: unknown) =>
  api.call(method, `/api/v1${path}`, body, caller.headers);
const items = (answer: Answer) => answer.body['items'] as unknown as Json[];
const claim = (caller: Caller, queue: string, more: object = {}) =>
  as(caller, 'POST', `/queues/${queue}/claim`, { workerId: 'w', max: 10, ...more });

async function record(queue: string, key: string, more: object = {}): Promise<string> {
  const made = await as(admin, 'POST', '/runs', { target: { type: 'pull', queue }, key, ...more });
  expect([made.status, made.text]).toEqual([201, expect.any(String)]);
  return made.body['id'] as unknown as string;
}

test('a scope sees its queues whole, and of shared ones its own runs and who works there', async () => {
  await record('billing.q', 'billing.1');
  await record('billing.q', 'ops.1');
  await record('shared.q', 'billing.2');
  for (const key of ['ops.2', 'ops.3']) await record('shared.q', key);
  await record('shared.of-ops', 'ops.4');
  await record('ops.q', 'billing.3');
  await claim(admin, 'shared.idle');
  await claim(admin, 'ops.idle');
  await api.pullQueues.claim({
    ...{ queue: 'shared.q', workerId: 'w', max: 1, leaseSeconds: 60, waitSeconds: 0 },
    ...{ scope: null, signal: new AbortController().signal },
  });
  const listed = async (caller: Caller) =>
    items(await as(caller, 'GET', '/queues')).map(({ queue, pending, running, workers }) => [
      queue,
      Number(pending) + Number(running),
      workers,
    ]);
  await expect
    .poll(() => listed(billing))
    .toEqual([
      ['billing.q', 2, 0],
      ['shared.idle', 0, 1],
      ['shared.q', 1, 1],
    ]);
  expect(await listed(ops)).toEqual([
    ['ops.idle', 0, 1],
    ['ops.q', 1, 0],
    ['shared.idle', 0, 1],
    ['shared.of-ops', 1, 0],
    ['shared.q', 2, 1],
  ]);
  expect(await listed(admin)).toHaveLength(6);
});

test('a worker claims from its queues alone', async () => {
  await record('ops.w', 'billing.w');
  await record('shared.w', 'billing.w2');
  expect((await claim(worker, 'ops.w')).status).toBe(404);
  expect((await claim(worker, 'shared.w')).status).toBe(403);
  expect(items(await claim(admin, 'ops.w'))).toHaveLength(1);
});

test('a claimed run carries its own dependencies, and of its dependents those that the scope sees', async () => {
  const first = await record('ops.first', 'ops.first');
  await claim(admin, 'ops.first');
  const ended = { status: 'succeeded', result: 'of ops', workerId: 'w' };
  expect((await as(admin, 'POST', `/runs/${first}/complete`, ended)).status).toBe(200);
  const id = await record('billing.claimed', 'ops.claimed', { dependsOn: [first] });
  const dependents = [
    await record('ops.next', 'billing.next', { dependsOn: [id] }),
    await record('billing.next', 'ops.next', { dependsOn: [id] }),
  ];
  const plain = await record('billing.claimed', 'billing.plain');
  const [run, other] = items(await claim(worker, 'billing.claimed'));
  expect(run).toMatchObject({
    ...{ id, dependsOn: [first], dependents: [dependents[0]] },
    dependencies: [{ runId: first, status: 'succeeded' }],
  });
  expect(other).toMatchObject({ id: plain, dependents: [] });
  // A run of others in its queue is the worker's to report on, and not its to read.
  const beaten = await as(worker, 'POST', `/runs/${id}/heartbeat`, { workerId: 'w' });
  expect([beaten.status, beaten.body['dependents']]).toEqual([200, [dependents[0]]]);
  const whole = await as(admin, 'GET', `/runs/${id}`);
  expect(whole.body['dependents']).toEqual([...dependents].sort());
  expect((await as(billing, 'GET', `/runs/${id}`)).status).toBe(404);
  expect((await as(worker, 'POST', `/runs/${id}/complete`, ended)).status).toBe(200);
  expect((await as(worker, 'POST', `/runs/${dependents[1] ?? ''}/heartbeat`, {})).status).toBe(409);
  expect((await as(worker, 'POST', `/runs/${first}/complete`, ended)).status).toBe(404);
});
