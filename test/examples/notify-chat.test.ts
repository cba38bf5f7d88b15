import { expect, it } from 'vitest';
import { receiverOfTest } from '../support/of-test.ts';
import type { Answer, Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { type AnsweredRun, listRuns, runExample, runOnce, serveExample, sharedDaemon } from './program.ts';

const daemon = sharedDaemon();

interface Stage {
  chat: Receiver;
  /** A run of the schedule `billing`, whose target refuses it; and the run that tells of it. */
  failure: () => Promise<[failed: AnsweredRun, notification: AnsweredRun]>;
}

async function setTheStage(answer: Answer): Promise<Stage> {
  const [chat, target] = await Promise.all([
    receiverOfTest(answer),
    receiverOfTest((_, response) => response.writeHead(400).end('no')),
  ]);
  const relay = await serveExample('notify-chat/relay.mjs', {
    FIRELOCK_URL: daemon.url,
    CHAT_URL: `${chat.url}/hook`,
  });
  const schedule = runExample('notify-chat/schedule.sh', [], {
    FIRELOCK_URL: daemon.url,
    RELAY_URL: relay.url,
  });
  expect(await schedule.exited).toBe(0);
  const billing = { cron: '0 0 1 1 *', target: { type: 'http', url: target.url } };
  expect((await daemon.call('PUT', '/api/v1/schedules/billing', billing)).status).toBeOneOf([200, 201]);
  const failure = async (): Promise<[AnsweredRun, AnsweredRun]> => {
    const { body } = await daemon.call('POST', '/api/v1/schedules/billing/fire');
    const failed = await runOnce(daemon, (body as AnsweredRun).id, ({ status }) => status === 'failed');
    const notification = await until(
      async () => (await listRuns(daemon)).find((run) => run.parentRunId === failed.id) ?? null,
    );
    return [failed, notification];
  };
  return { chat, failure };
}

it('a failure is posted to the chat, again if the chat was away', async () => {
  let away = true;
  const { chat, failure } = await setTheStage((_, response) => {
    response.writeHead(away ? 503 : 200).end(away ? 'later' : 'ok');
    away = false;
  });
  const sooner = { retry: { minBackoffSeconds: 1 } };
  expect((await daemon.call('PATCH', '/api/v1/schedules/notify-chat', sooner)).status).toBe(200);
  const [failed, { id }] = await failure();
  const run = await runOnce(daemon, id, ({ status }) => status === 'succeeded');
  expect(run).toMatchObject({
    scheduleId: 'notify-chat',
    attempts: 2,
    result: { statusCode: 200, body: 'ok' },
  });
  const messages = chat.arrivals.map(({ path, text }) => [path, JSON.parse(text) as unknown]);
  const message = `billing, of ${failed.scheduledFor}, ended as failed: ${failed.error?.message ?? '?'}`;
  const expected = { text: `${message}\n${daemon.url}/api/v1/runs/${failed.id}` };
  expect(messages).toEqual([
    ['/hook', expected],
    ['/hook', expected],
  ]);
});

it('a message that the chat refuses for good has failed, and no message reports that', async () => {
  const { failure } = await setTheStage((_, response) => response.writeHead(404).end('no_such_hook'));
  const [failed, { id }] = await failure();
  const refused = await runOnce(daemon, id, ({ status }) => status === 'failed');
  expect(refused).toMatchObject({ attempts: 1, result: { statusCode: 404, body: 'no_such_hook' } });
  // What follows ends is done in their order: were there something of this one, it would be there before that of a later one.
  await failure();
  const followers = (await listRuns(daemon)).filter((run) => run.parentRunId !== null);
  expect(followers.filter((run) => run.parentRunId === failed.id)).toHaveLength(1);
  expect(followers.filter((run) => run.parentRunId === refused.id)).toEqual([]);
});
