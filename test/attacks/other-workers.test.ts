// @module-tag attack
import { expect, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { sharedApi } from '../api/api.ts';
import { changeRun } from '../support/run-rows.ts';

const OWNER = 'victim-7f3a';
const worker = newToken('thief', 'worker');
const operator = newToken('operator', 'operator');
const api = sharedApi({ apiTokens: [worker.known, operator.known] });

async function claimed(): Promise<string> {
  const body = { target: { type: 'pull', queue: 'work' } };
  await api.call('POST', '/api/v1/runs', body, operator.headers);
  const asked = { workerId: OWNER, leaseSeconds: 60 };
  const answer = await api.call('POST', '/api/v1/queues/work/claim', asked, worker.headers);
  return answer.body['items']?.[0]?.['id'] as unknown as string;
}

const rowOf = async (id: string) => {
  const [row] = await api.sql`SELECT status, worker_id, expires_at, progress, result_body FROM runs WHERE id = ${id}`;
  return row;
};

const WORDS = [{}, { attempt: 1 }, { workerId: null }, { workerId: 'thief' }, { workerId: OWNER.toUpperCase() }];

test.each([
  ['leased to another worker', {}],
  ['pending again after the lease of another worker', { status: 'pending', claimed_by: null, expires_at: null }],
])('nobody speaks for a run that is %s without the name of that worker, which no answer says', async (_, as) => {
  const id = await claimed();
  await changeRun(api.sql, id, as);
  const before = await rowOf(id);
  for (const { headers } of [worker, operator]) {
    for (const word of WORDS) {
      for (const [action, more] of [
        ['complete', { status: 'succeeded', result: 'stolen' }],
        ['complete', { status: 'failed', error: 'stolen' }],
        ['heartbeat', { progress: 1 }],
      ] as const) {
        const answer = await api.call('POST', `/api/v1/runs/${id}/${action}`, { ...word, ...more }, headers);
        expect([word, action, answer.status]).toEqual([word, action, 409]);
        expect(answer.text).not.toContain(OWNER);
      }
    }
  }
  expect(await rowOf(id)).toEqual(before);
  const own = { status: 'succeeded', attempt: 1, workerId: OWNER };
  const answer = await api.call('POST', `/api/v1/runs/${id}/complete`, own, worker.headers);
  expect([answer.status, answer.body['status']]).toEqual([200, 'succeeded']);
});

test('a worker cannot read who holds a run', async () => {
  const id = await claimed();
  for (const path of [`runs/${id}`, 'runs', 'queues', 'instances', 'audit'])
    expect([path, (await api.call('GET', `/api/v1/${path}`, undefined, worker.headers)).status]).toEqual([path, 403]);
});
