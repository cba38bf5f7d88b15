// @module-tag long
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { endedRuns } from '../../support/fires.ts';
import { until } from '../../support/until.ts';

const run = promisify(execFile);
const SCHEDULES = 20;

const descriptorsOf = async (pid: number) => (await readdir(`/proc/${pid}/fd`)).length;

async function limit(pid: number, soft: number | string): Promise<void> {
  await run('prlimit', ['--pid', String(pid), `--nofile=${soft}:`]);
}

const resourcesOf = async (daemon: Daemon) => {
  const { status, body } = await daemon.call('GET', '/readyz');
  return { status, resources: (body as { checks: Record<string, string> }).checks['resources'] };
};

it('an instance without a free file descriptor fails no run, leaves all to others, and comes back', async (context) => {
  if (process.platform !== 'linux' || (await run('prlimit', ['--version']).catch(() => null)) === null) {
    context.skip('there is no prlimit');
    return;
  }
  const { url } = await databaseOfTest();
  const sql = sqlOfTest(url);
  const receiver = await receiverOfTest();
  const sick = await readyDaemon(url);
  // At most once, each takes a connection of its own.
  const items = Array.from({ length: SCHEDULES }, (_, at) => ({
    id: `s${at}`,
    cron: '* * * * * *',
    delivery: 'atMostOnce',
    retry: { maxAttempts: 1 },
    target: { type: 'http', url: receiver.url },
  }));
  expect((await sick.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
  await receiver.arrived(SCHEDULES);
  const { pid } = sick;
  const normal = Number(
    (await run('prlimit', ['--pid', String(pid), '--nofile', '-o', 'SOFT', '--noheadings'])).stdout,
  );

  await limit(pid, await descriptorsOf(pid));
  const lacking = await until(async () => {
    const now = await resourcesOf(sick);
    return now.status === 503 ? now : null;
  });
  expect(lacking.resources).toBe('this process has no file descriptor left (EMFILE): other instances send its runs');
  const healthy = await readyDaemon(url);
  const arrived = receiver.arrivals.length;
  await receiver.arrived(arrived + 3 * SCHEDULES);
  expect(await resourcesOf(healthy)).toEqual({ status: 200, resources: 'ok' });

  await limit(pid, normal);
  await until(async () => ((await resourcesOf(sick)).status === 200 ? true : null));
  healthy.signal('SIGTERM');
  expect(await healthy.exited).toBe(0);
  await receiver.arrived(receiver.arrivals.length + 3 * SCHEDULES);
  for (const { id } of items) await sick.call('PATCH', `/api/v1/schedules/${id}`, { enabled: false });
  for (const one of await endedRuns(sql)) expect(one).toMatchObject({ status: 'succeeded', failures: 0 });
  const said = sick.log().map(({ msg }) => msg);
  expect(said).toContain(
    'this instance lacks what it takes to send: its runs go back without a failure, and it claims none until it can',
  );
  expect(said).toContain('this instance can send again, and claims runs');
  expect(sick.log().find(({ needed }) => needed !== undefined)).toMatchObject({
    needed: 4_737,
    limit: normal,
  });
});
