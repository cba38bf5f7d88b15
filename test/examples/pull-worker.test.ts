// @module-tag long
import { expect, it } from 'vitest';
import type { Variables } from '../support/daemon.ts';
import { readyDaemon } from '../support/daemon.ts';
import { enqueue, mortalDaemon, runById, runExample, runOnce, sharedDaemon } from './program.ts';
import { LONG } from '../support/runner/long.ts';

const daemon = sharedDaemon();

const work = (daemon: { url: string }, variables: Variables = {}) =>
  runExample('pull-worker.js', ['texts'], { FIRELOCK_URL: daemon.url, WORKER_ID: 'one', ...variables });

it(
  'a worker keeps the lease of a long run, and finishes the present run when it has to stop',
  { tags: [LONG] },
  async () => {
    const worker = work(daemon, { LEASE_SECONDS: '2' });
    const long = await enqueue(daemon, 'texts', { text: 'é', seconds: 2.5 });
    const done = await runOnce(daemon, long, ({ status }) => status === 'succeeded');
    expect(done).toMatchObject({ attempts: 1, failures: 0, workerId: 'one', error: null });
    expect(JSON.parse(done.result?.body ?? '')).toEqual({ did: 'é' });

    const last = await enqueue(daemon, 'texts', { seconds: 1 });
    await runOnce(daemon, last, ({ status }) => status === 'running');
    worker.signal('SIGTERM');
    expect(await worker.exited).toBe(0);
    expect(await runById(daemon, last)).toMatchObject({ status: 'succeeded', attempts: 1 });
  },
);

it('a waiting worker stops at once and takes no more runs; one without a queue says so', async () => {
  const worker = work(daemon);
  const first = await enqueue(daemon, 'texts', { seconds: 0 });
  await worker.said(new RegExp(`^${first}: succeeded`));
  worker.signal('SIGTERM');
  expect(await worker.exited).toBe(0);
  const second = await enqueue(daemon, 'texts', { seconds: 0 });
  const another = work(daemon, { WORKER_ID: 'two' });
  await another.said(new RegExp(`^${second}: succeeded`));
  // It may have been claimed for the one that left, and taken back, before its daemon had noticed.
  expect(await runById(daemon, second)).toMatchObject({ failures: 0, workerId: 'two' });
  expect(worker.lines.join('\n')).not.toContain(second);

  const lost = runExample('pull-worker.js', ['not a queue'], { FIRELOCK_URL: daemon.url });
  expect(await lost.exited).toBe(1);
  expect(lost.lines.at(-1)).toMatch(/^400 /);
});

it('a worker gives up a run that no longer belongs to it, and goes on with the next', async () => {
  const worker = work(daemon, { LEASE_SECONDS: '3' });
  const endless = await enqueue(daemon, 'texts', { seconds: 1000 });
  const next = await enqueue(daemon, 'texts', { seconds: 0 });
  await runOnce(daemon, endless, ({ status }) => status === 'running');
  expect((await daemon.call('POST', `/api/v1/runs/${endless}/cancel`)).status).toBe(200);
  await worker.said(new RegExp(`^${endless}: heartbeat: 409 .*cancelled`));
  await runOnce(daemon, next, ({ status }) => status === 'succeeded');
  expect(worker.lines).toContain(`${endless}: given up`);
  expect(await runById(daemon, endless)).toMatchObject({ status: 'cancelled', attempts: 1 });
});

it(
  'a worker outlives the daemon: it reports what it did meanwhile to the next one',
  { tags: [LONG] },
  async () => {
    const { daemon, databaseUrl } = await mortalDaemon();
    const worker = work(daemon);
    const run = await enqueue(daemon, 'texts', { text: 'kept', seconds: 1 });
    await runOnce(daemon, run, ({ status }) => status === 'running');
    daemon.signal('SIGKILL');
    await worker.said(new RegExp(`^${run}: ECONNREFUSED; again in`));
    const next = await readyDaemon(databaseUrl, { PORT: String(daemon.port) });
    const done = await runOnce(next, run, ({ status }) => status === 'succeeded');
    expect(done).toMatchObject({ attempts: 1, result: { body: '{"did":"kept"}' } });
    const later = await enqueue(next, 'texts', { seconds: 0 });
    await worker.said(new RegExp(`^${later}: succeeded`));
  },
);
