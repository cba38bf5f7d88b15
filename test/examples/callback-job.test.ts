// @module-tag long
import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import type { Program } from '../support/programs.ts';
import { type AnsweredRun, runById, runExample, runOnce, serveExample, sharedDaemon } from './program.ts';

const daemon = sharedDaemon();

interface Stage {
  receiver: Program;
  fire: (payload: unknown) => Promise<AnsweredRun>;
}

async function setTheStage(heartbeatSeconds: number, completionTimeoutSeconds: number): Promise<Stage> {
  const ours = { FIRELOCK_URL: daemon.url };
  const receiver = await serveExample('callback-job/receiver.mjs', {
    ...ours,
    HEARTBEAT_SECONDS: String(heartbeatSeconds),
  });
  const schedule = runExample('callback-job/schedule.sh', [], {
    ...ours,
    RECEIVER_URL: receiver.url,
    COMPLETION_TIMEOUT_SECONDS: String(completionTimeoutSeconds),
  });
  expect(await schedule.exited).toBe(0);
  const fire = async (payload: unknown) => {
    const answer = await daemon.call('POST', '/api/v1/schedules/nightly-job/fire', { payload });
    expect(answer.status).toBe(202);
    return answer.body as AnsweredRun;
  };
  return { receiver, fire };
}

const started = ({ lines }: Program) => lines.filter((line) => line.endsWith(': started'));

it('a job that sends heartbeats may take longer than the time without one', async () => {
  const { receiver, fire } = await setTheStage(0.3, 2);
  const { id } = await fire({ steps: 6, stepSeconds: 0.5 });
  const underWay = await runOnce(daemon, id, ({ progress }) => progress !== null && progress > 0);
  expect(underWay).toMatchObject({ status: 'running', executionId: `job-${id}`, attempts: 1 });
  const run = await runOnce(daemon, id, ({ status }) => status !== 'running');
  expect(run).toMatchObject({ status: 'succeeded', attempts: 1, failures: 0, error: null });
  expect(JSON.parse(run.result?.body ?? '')).toEqual({ steps: 6 });
  expect(started(receiver)).toHaveLength(1);
});

it('a job that goes wrong is reported as failed, and a cancelled one stops', async () => {
  const { receiver, fire } = await setTheStage(10, 60);
  const wrong = await fire({ steps: 1, stepSeconds: 'much' });
  const failed = await runOnce(daemon, wrong.id, ({ status }) => status === 'failed');
  expect(failed).toMatchObject({
    attempts: 1,
    error: { kind: 'reported', message: 'RangeError: stepSeconds has to be a number' },
  });

  const { id } = await fire({ steps: 1000 });
  await runOnce(daemon, id, ({ status }) => status === 'running');
  expect((await daemon.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
  await receiver.said(new RegExp(`^${id}: stopped`));
  expect(await runById(daemon, id)).toMatchObject({ status: 'cancelled', reason: 'request' });
});

it('firelock asks about a job that was silent for too long; it goes on and is not started again', async () => {
  const { receiver, fire } = await setTheStage(3, 1);
  const { id } = await fire({ steps: 1000 });
  const found = await runOnce(daemon, id, ({ status, attempts }) => status === 'running' && attempts > 1);
  expect(found).toMatchObject({ executionId: `job-${id}`, failures: found.attempts - 1 });
  // Asking has taken the number of another attempt, and sent nothing: the one that was sent has the say still.
  const heard = receiver.lines.length;
  await receiver.said(new RegExp(`^${id}: heartbeat 200`), heard);
  expect(started(receiver)).toEqual([`${id}: started`]);

  expect((await daemon.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
  await until(() => receiver.lines.find((line) => line === `${id}: stopped`) ?? null);
});
