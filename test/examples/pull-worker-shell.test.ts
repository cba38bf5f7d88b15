// @module-tag long
import { expect, it } from 'vitest';
import { type Variables, readyDaemon } from '../support/daemon.ts';
import { type Api, enqueue, mortalDaemon, runById, runExample, runOnce, sharedDaemon } from './program.ts';
import { LONG } from '../support/runner/long.ts';

const daemon = sharedDaemon();

const work = (daemon: Api, script: string, variables: Variables = {}) =>
  runExample('pull-worker.sh', ['texts', 'sh', '-c', script], {
    FIRELOCK_URL: daemon.url,
    WORKER_ID: 'shell-1',
    ...variables,
  });

it('a command gets the run on its stdin, and its output is the result', async () => {
  // As if it were the answer's own.
  const payload = { id: 'not-this', attempts: 99, text: '"payload":{"attempts":7} \\ é\n' };
  const worker = work(daemon, 'printf "%s/%s\\n" "$RUN_ID" "$ATTEMPT"; cat');
  const id = await enqueue(daemon, 'texts', payload);
  const done = await runOnce(daemon, id, ({ status }) => status === 'succeeded');
  expect(done).toMatchObject({ attempts: 1, workerId: 'shell-1' });
  const [ids, run] = (done.result?.body ?? '').split('\n');
  expect(ids).toBe(`${id}/1`);
  expect(JSON.parse(run ?? '')).toMatchObject({ id, attempts: 1, payload });

  worker.signal('SIGTERM');
  expect(await worker.exited).toBe(0);
});

it('any output is reported: quotes, tabs, half characters, and more than is kept', async () => {
  work(daemon, `printf '"\\\\\\t\\001é\\377\\n\\nend'; head -c 300000 /dev/zero | tr '\\0' x`);
  const id = await enqueue(daemon, 'texts', null);
  const done = await runOnce(daemon, id, ({ status }) => status === 'succeeded');
  expect(done.result?.body).toMatch(/^"\\ é\n\nendx+$/);
});

it('exit code 75 means later, any other but 0 means failed', async () => {
  work(daemon, 'test "$ATTEMPT" -gt 1 || exit 75; exit 3', { LEASE_SECONDS: '1' });
  const id = await enqueue(daemon, 'texts', null);
  const failed = await runOnce(daemon, id, ({ status }) => status === 'failed');
  expect(failed).toMatchObject({
    attempts: 2,
    failures: 1,
    error: { kind: 'reported', message: 'exit code 3' },
  });
});

it(
  'the lease of a long run is kept; a cancelled run is stopped, and the next one is done',
  { tags: [LONG] },
  async () => {
    const worker = work(daemon, 'grep -q endless && exec sleep 1000; sleep 3.5', { LEASE_SECONDS: '3' });
    const endless = await enqueue(daemon, 'texts', 'endless');
    await runOnce(daemon, endless, ({ status }) => status === 'running');
    expect((await daemon.call('POST', `/api/v1/runs/${endless}/cancel`)).status).toBe(200);
    await worker.said(new RegExp(`${endless}: stopped: .*cancelled`));

    const long = await enqueue(daemon, 'texts', null);
    const done = await runOnce(daemon, long, ({ status }) => status === 'succeeded');
    expect(done).toMatchObject({ attempts: 1, failures: 0 });
    expect(await runById(daemon, endless)).toMatchObject({ status: 'cancelled', attempts: 1 });
  },
);

it(
  'the worker outlives the daemon, and finishes the present run when it has to stop',
  { tags: [LONG] },
  async () => {
    const { daemon, databaseUrl } = await mortalDaemon();
    const worker = work(daemon, 'sleep 1; echo done');
    const id = await enqueue(daemon, 'texts', null);
    await runOnce(daemon, id, ({ status }) => status === 'running');
    worker.signal('SIGTERM');
    daemon.signal('SIGKILL');
    await worker.said(/curl: \(7\)/);
    const next = await readyDaemon(databaseUrl, { PORT: String(daemon.port) });
    expect(await worker.exited).toBe(0);
    expect(await runById(next, id)).toMatchObject({
      status: 'succeeded',
      attempts: 1,
      result: { body: 'done' },
    });
  },
);
