// @module-tag long
import { expect, onTestFinished, test } from 'vitest';
import { type RunHandler, type WorkerOptions, work } from '../../clients/typescript/src/worker/index.ts';
import { until } from '../support/until.ts';
import { enqueue, runOnce, sharedDaemon, tokenOf } from '../examples/program.ts';

const daemon = sharedDaemon();

function workHere(queue: string, handler: RunHandler, more: Partial<WorkerOptions> = {}) {
  const options = { url: daemon.url, token: tokenOf('worker'), onError: () => undefined, ...more };
  const worker = work(queue, handler, options);
  onTestFinished(() => worker.stop());
  return worker;
}

test('a run whose work fails comes again, and counts a failure', async () => {
  const attempts: number[] = [];
  workHere('again', (run) => {
    attempts.push(run.attempts);
    if (attempts.length === 1) throw new Error('boom');
    return 'done';
  });
  const id = await enqueue(daemon, 'again', null);
  const run = await runOnce(daemon, id, ({ status }) => status === 'succeeded');
  expect([run.attempts, run.failures, run.result?.body, attempts]).toEqual([2, 1, 'done', [1, 2]]);
});

test('a run that was claimed ahead is released when the worker stops, and another worker does it', async () => {
  const [first, second] = [await enqueue(daemon, 'ahead', 1), await enqueue(daemon, 'ahead', 2)];
  let began: (id: string) => void = () => undefined;
  const begun = new Promise<string>((resolve) => (began = resolve));
  let end: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (end = resolve));
  const handler: RunHandler = ({ id }) => {
    began(id);
    return held;
  };
  const worker = workHere('ahead', handler, { workerId: 'one', prefetch: 1 });
  expect(await begun).toBe(first);
  const stopped = worker.stop();
  const waiting = await runOnce(daemon, second, ({ status }) => status === 'pending');
  expect(waiting).toMatchObject({ attempts: 1, failures: 0 });
  end();
  await stopped;
  expect((await runOnce(daemon, first, ({ status }) => status === 'succeeded')).workerId).toBe('one');
  workHere('ahead', () => null, { workerId: 'two' });
  const done = await runOnce(daemon, second, ({ status }) => status === 'succeeded');
  expect(done).toMatchObject({ attempts: 2, failures: 0, workerId: 'two' });
});

test('a run that is cancelled cancels its work', async () => {
  const id = await enqueue(daemon, 'cancelled', null);
  const signals: AbortSignal[] = [];
  const worker = workHere(
    'cancelled',
    (_, { signal }) => {
      signals.push(signal);
      return new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    { leaseSeconds: 1 },
  );
  await until(() => signals.length === 1 || null);
  await daemon.call('POST', `/api/v1/runs/${id}/cancel`);
  await worker.stop();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  await runOnce(daemon, id, ({ status }) => status === 'cancelled');
});

test('what the work prints is kept, however much it is, and however it is cut', async () => {
  const printed = `${'zażółć gęślą jaźń\n'.repeat(6000)}end\n`;
  workHere('printed', (_, { log }) => log(printed));
  const id = await enqueue(daemon, 'printed', null);
  await runOnce(daemon, id, ({ status }) => status === 'succeeded');
  const headers = { authorization: `Bearer ${tokenOf('worker')}` };
  const answer = await fetch(`${daemon.url}/api/v1/runs/${id}/log`, { headers });
  expect(await answer.text()).toBe(printed);
  expect(answer.headers.get('firelock-log-complete')).toBe('true');
});
