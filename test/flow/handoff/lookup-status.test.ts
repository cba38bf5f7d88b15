import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import type { Completion, Definition } from '../../../src/core/schedules/schedule.ts';
import { completeRun, heartbeatRun } from '../../../src/operations/runs/act-on-runs.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { until } from '../../support/until.ts';
import { targetAt } from '../../support/targets.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
/** Takes every delivery and cuts the answer off; says what it is told to when it is asked. */
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    if (path.startsWith('/lookup')) response.end(word);
    else response.socket?.resetAndDestroy();
  }),
);
let word: string;

beforeEach(async () => {
  await instance.start();
});

async function afterTheWord(completion: Completion, delivery: Definition['delivery'], given: Partial<Definition> = {}) {
  await instance.put('asked', {
    url: receiver.url,
    completion,
    delivery,
    completionTimeoutSeconds: 77,
    retry: { maxAttempts: 3, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    target: targetAt(receiver.url, { lookup: { url: `${receiver.url}/lookup`, method: 'GET', headers: {} } }),
    ...given,
  });
  await instance.fire('asked');
  return until(async () => {
    const [run] = await store.rows<{ status: string }>(sql`SELECT status, execution_id, error, lease_seconds,
      expires_at > clock_timestamp() AS awaited, finished_at IS NULL AS open FROM all_runs`);
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

it('at most once, a target that has it is believed at once, however long the attempt might have taken', async () => {
  word = '{}';
  expect(await afterTheWord('response', 'atMostOnce', { timeoutSeconds: 3600 })).toMatchObject({
    status: 'succeeded',
  });
  expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/', '/lookup']);
});

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
  'a run that its target has, with the status %j, has its completion awaited',
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

it('a run that a 2xx ends is ended by its arrival, whatever its target says about the work', async () => {
  word = '{"status":"failed"}';
  expect(await afterTheWord('response', 'atLeastOnce')).toMatchObject({ status: 'succeeded', error: null });
});

it('reports about a run that had arrived may name the attempt that was sent, or the one that asked', async () => {
  word = '{"status":"running"}';
  await afterTheWord('callback', 'atLeastOnce');
  const [asked] = await store.rows<{ id: string; attempts: number }>(sql`SELECT id, attempts FROM all_runs`);
  const id = asked?.id ?? '';
  expect(asked?.attempts).toBe(2);
  const beat = (attempt: number) => heartbeatRun(instance.deps, id, { attempt, workerId: null, progress: null });
  const complete = (attempt: number) =>
    completeRun(instance.deps, id, {
      attempt,
      workerId: null,
      status: 'succeeded',
      error: null,
      result: null,
    });
  expect([await beat(0), await beat(3), await complete(0)].map(({ kind }) => kind)).toEqual(
    Array(3).fill('notPossible'),
  );
  expect([await beat(1), await beat(2), await complete(1)].map(({ kind }) => kind)).toEqual(Array(3).fill('done'));
});

it('once it is sent again, reports about the attempt before it no longer count', async () => {
  word = '{"status":"running"}';
  await afterTheWord('callback', 'atLeastOnce');
  await store.rows(sql`UPDATE runs SET status = 'pending', due_at = now(), claimed_by = NULL, in_doubt_until = NULL`);
  instance.pipeline.dispatcher.wake();
  await receiver.arrived(4);
  const [id] = (await store.rows<{ id: string }>(sql`SELECT id FROM all_runs`)).map((row) => row.id);
  const late = await until(async () => {
    const [row] = await store.rows<{ status: string }>(sql`SELECT status FROM all_runs`);
    return row?.status === 'running'
      ? completeRun(instance.deps, id ?? '', {
          attempt: 1,
          workerId: null,
          status: 'succeeded',
          error: null,
          result: null,
        })
      : null;
  });
  expect(late).toMatchObject({ kind: 'notPossible' });
});
