import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Completion, Definition } from '../../src/core/schedule.ts';
import { type Store, type TestInstance, createInstance, createStore } from '../support/pipeline.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

let store: Store;
let instance: TestInstance;
/** Takes every delivery and cuts the answer off; says what it is told to when it is asked. */
let receiver: Receiver;
let word: string;

beforeEach(async () => {
  store = await createStore();
  instance = await createInstance(store);
  receiver = await startReceiver(({ path }, response) => {
    if (path.startsWith('/lookup')) response.end(word);
    else response.socket?.resetAndDestroy();
  });
  await instance.start();
});

afterEach(async () => {
  await instance.stop();
  await receiver.close();
  await store.drop();
});

async function afterTheWord(completion: Completion, delivery: Definition['delivery']) {
  await instance.put('asked', {
    url: receiver.url,
    completion,
    delivery,
    completionTimeoutSeconds: 77,
    timeoutSeconds: 1,
    retry: { maxAttempts: 3, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    target: {
      type: 'http',
      url: receiver.url,
      method: 'POST',
      headers: {},
      lookup: { url: `${receiver.url}/lookup`, method: 'GET', headers: {} },
      cancel: null,
    },
  });
  await instance.fire('asked');
  return until(async () => {
    const [run] = await store.rows<{ status: string }>(sql`SELECT status, execution_id, error, lease_seconds,
      expires_at > clock_timestamp() AS awaited, finished_at IS NULL AS open FROM runs`);
    return run && run.status !== 'pending' ? run : null;
  });
}

it.each(['atLeastOnce', 'atMostOnce'] as const)(
  'a run that its target has done has succeeded, %s',
  async (delivery) => {
    word = '{"status":"succeeded","executionId":"e-9"}';
    expect(await afterTheWord('callback', delivery)).toMatchObject({
      status: 'succeeded',
      execution_id: 'e-9',
      error: null,
      open: false,
    });
  },
);

it('a run that failed at its target has failed, and is not sent again', async () => {
  word = '{"status":"failed"}';
  expect(await afterTheWord('callback', 'atLeastOnce')).toMatchObject({
    status: 'failed',
    error: { kind: 'reported' },
    open: false,
  });
  expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/', '/lookup']);
});

it.each(['{"status":"running"}', '{"status":"queued"}', '{}', ''])(
  'a run that its target has, and says %j of, has its completion awaited',
  async (said) => {
    word = said;
    expect(await afterTheWord('callback', 'atLeastOnce')).toMatchObject({
      status: 'running',
      lease_seconds: 77,
      awaited: true,
      open: true,
    });
  },
);

it('a run that a 2xx ends is ended by the arrival, whatever its target says of the work', async () => {
  word = '{"status":"failed"}';
  expect(await afterTheWord('response', 'atLeastOnce')).toMatchObject({ status: 'succeeded', error: null });
});
