import { expect, it } from 'vitest';
import type { Definition, HttpTarget } from '../../../src/core/schedules/schedule.ts';
import { sealTarget } from '../../../src/core/schedules/target-secrets.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { SECRETS, ringOf } from '../../support/secrets.ts';
import { until } from '../../support/until.ts';
import { targetAt } from '../../support/targets.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
const receiver = eachTest(receiverOfTest);

/** With a header that is encrypted by one of these keys. */
async function put(id: string, ring: typeof SECRETS, more: Partial<Definition> = {}): Promise<void> {
  const url = receiver.url;
  const { uid } = await instance.put(id, { url, ...more });
  const call = { url: `${url}/lookup`, method: 'GET' as const, headers: {} };
  const given: HttpTarget = targetAt(url, { headers: { 'x-key': id }, lookup: call });
  const { target } = sealTarget(given, { ring, uid, before: null });
  await instance.put(id, { url, ...more, target });
}

const LOST = ringOf(`lost:${Buffer.alloc(32, 1).toString('base64')}`);
const retry = { maxAttempts: 2, minBackoffSeconds: 0.05, maxBackoffSeconds: 0.05 };

it('runs whose secrets cannot be decrypted are tried again, end as failed, and send nothing; others of the batch go on', async () => {
  await put('fine', SECRETS);
  await put('lost', LOST, { retry });
  await put('once', LOST, { retry, delivery: 'atMostOnce' });
  const runs = await Promise.all(['fine', 'lost', 'once'].map((id) => instance.fire(id)));
  await instance.start();
  const ended = await until(async () => {
    const found = await Promise.all(runs.map(({ id }) => store.database.run((db) => findRun(db, id, null))));
    return found.every((run) => run !== null && run.finishedAt !== null) ? found : null;
  });
  const message =
    'nothing was sent: /target/headers/x-key is encrypted with the key "lost", which FIRELOCK_SECRET_KEYS does not have';
  const failed = { status: 'failed', failures: 2, error: { kind: 'network', message }, handedOffAt: null };
  expect(ended).toMatchObject([{ status: 'succeeded' }, failed, failed]);
  expect(receiver.arrivals.map(({ headers }) => headers['x-key'])).toEqual(['fine']);
});
