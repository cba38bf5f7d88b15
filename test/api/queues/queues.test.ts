import { describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { faultPaths, quietApi, itemsOf } from '../api.ts';

const api = quietApi();

let names = 0;
/** One that no other test uses. */
const freshQueue = () => `queue-${(names += 1)}`;
const claim = (queue: string, body: unknown = { workerId: 'w' }) =>
  api.call('POST', `/api/v1/queues/${queue}/claim`, body);
const textOf = (value: unknown) => value as string;

async function record(queue: string, more: object = {}): Promise<string> {
  const answer = await api.call('POST', '/api/v1/runs', { target: { type: 'pull', queue }, ...more });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return textOf(answer.body['id']);
}

describe('POST /queues/{queue}/claim', () => {
  test('leases runs to the worker, and answers them whole, without changing a digit of their payload', async () => {
    const queue = freshQueue();
    const id = await record(queue);
    await api.sql`UPDATE runs SET own_payload = '{"n": 1.00000000000000000001}' WHERE id = ${id}`;
    const answer = await claim(queue, { workerId: 'wörker 1', max: 100, leaseSeconds: 1.5 });
    expect(answer.status).toBe(200);
    expect(itemsOf(answer)).toHaveLength(1);
    const run = itemsOf(answer)[0] ?? {};
    expect(run).toMatchObject({
      id,
      status: 'running',
      queue,
      workerId: 'wörker 1',
      attempts: 1,
      leaseUntil: expect.stringMatching(/Z$/) as unknown,
      completionDueAt: null,
    });
    expect(Date.parse(textOf(run['leaseUntil'])) - Date.parse(textOf(run['claimedAt']))).toBe(1500);
    expect(run).not.toHaveProperty('dependencies');
    expect(answer.text).toContain('"payload":{"n": 1.00000000000000000001}');
    const { body } = await api.call('GET', `/api/v1/runs/${id}`);
    expect(body).toMatchObject({ status: 'running', workerId: 'wörker 1', leaseUntil: run['leaseUntil'] });
  });

  test('contains the dependencies of a run that has some', async () => {
    const queue = freshQueue();
    const first = await record(queue);
    const second = await record(queue, { dependsOn: [first] });
    await claim(queue);
    await api.call('POST', `/api/v1/runs/${first}/complete`, {
      ...{ status: 'succeeded', workerId: 'w', result: { rows: 12 } },
    });
    await api.applyEffects();
    expect(itemsOf(await claim(queue))).toMatchObject([
      {
        id: second,
        dependsOn: [first],
        dependencies: [
          {
            runId: first,
            status: 'succeeded',
            error: null,
            result: { statusCode: null, body: '{"rows":12}' },
          },
        ],
      },
    ]);
  });

  test('waits for work if the worker asks for that', async () => {
    const queue = freshQueue();
    const answer = claim(queue, { workerId: 'w', waitSeconds: 60 });
    await until(async () => (await workersOf(queue)) === 1 || null);
    const id = await record(queue);
    expect(itemsOf(await answer)).toMatchObject([{ id }]);
  });

  test('claims nothing for a client that has gone', async () => {
    const queue = freshQueue();
    const gone = new AbortController();
    const left = fetch(`${api.url}/api/v1/queues/${queue}/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: 'gone', waitSeconds: 60, max: 100 }),
      signal: gone.signal,
    }).catch(() => null);
    await until(async () => (await workersOf(queue)) === 1 || null);
    gone.abort();
    await left;
    const id = await record(queue);
    const [run] = itemsOf(await claim(queue, { workerId: 'here', waitSeconds: 60 }));
    expect(run).toMatchObject({ id, workerId: 'here' });
  });

  test('is empty for an unknown queue', async () => {
    const answer = await claim('never.heard-of_it');
    expect([answer.status, answer.body]).toEqual([200, { items: [] }]);
  });

  test('names every fault', async () => {
    const all = await claim('no%20name', {
      workerId: '',
      max: 101,
      leaseSeconds: 0,
      waitSeconds: 61,
      more: 1,
    });
    expect(all.status).toBe(400);
    expect(faultPaths(all)).toEqual(['/leaseSeconds', '/max', '/more', '/waitSeconds', '/workerId', 'queue']);
    for (const body of [
      {},
      [],
      'null',
      { workerId: 7 },
      { workerId: 'a\nb' },
      { workerId: '\u0000' },
      { workerId: 'x'.repeat(256) },
      { workerId: 'w', max: 0 },
      { workerId: 'w', max: 1.5 },
      { workerId: 'w', max: null },
      { workerId: 'w', leaseSeconds: 86_401 },
      { workerId: 'w', leaseSeconds: '60' },
      { workerId: 'w', waitSeconds: -1 },
    ]) {
      const answer = await claim('q', body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(faultPaths(answer)).toHaveLength(1);
    }
    expect((await claim('q'.repeat(129))).status).toBe(400);
    expect(faultPaths(await api.call('POST', '/api/v1/queues/q/claim?max=2', { workerId: 'w' }))).toEqual(['max']);
    expect((await api.call('POST', '/api/v1/queues/q/claim')).status).toBe(400);
    expect((await api.call('GET', '/api/v1/queues/q/claim')).status).toBe(405);
  });
});

describe('GET /queues', () => {
  test('lists their runs and their workers', async () => {
    const queue = freshQueue();
    await record(queue);
    await record(queue);
    await record(queue, { runAt: '2090-01-01T00:00:00Z' });
    await claim(queue, { workerId: 'one' });
    await until(async () => (await workersOf(queue)) === 1 || null);
    const answer = await api.call('GET', '/api/v1/queues');
    expect(answer.status).toBe(200);
    const listed = itemsOf(answer).map((one) => textOf(one['queue']));
    expect(listed).toEqual([...listed].sort());
    expect(itemsOf(answer).find((one) => textOf(one['queue']) === queue)).toEqual({
      queue,
      pending: 1,
      scheduled: 1,
      running: 1,
      oldestPendingSeconds: expect.any(Number) as unknown,
      workers: 1,
    });
    expect(faultPaths(await api.call('GET', '/api/v1/queues?limit=5'))).toEqual(['limit']);
  });
});

async function workersOf(queue: string): Promise<number> {
  const listed = itemsOf(await api.call('GET', '/api/v1/queues'));
  const found = listed.find((one) => textOf(one['queue']) === queue);
  return Number(found?.['workers'] ?? 0);
}
