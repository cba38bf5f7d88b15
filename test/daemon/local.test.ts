import { chmod, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { serverPid } from '../local-postgres/user-process.ts';
import { receiverOfTest } from '../support/of-test.ts';
import { type Daemon, spawnDaemon, startDaemon } from '../support/daemon.ts';
import type { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

let directory: string;
let dataDir: string;
let receiver: Receiver;

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-local-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  dataDir = join(directory, 'data');
  receiver = await receiverOfTest();
});

afterEach(async () => {
  const pid = await serverPid(dataDir);
  if (pid !== undefined) process.kill(pid, 'SIGQUIT');
  await until(async () => ((await serverPid(dataDir)) === undefined ? true : null));
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
});

async function start(): Promise<Daemon> {
  const daemon = await startDaemon({ FIRELOCK_DATA_DIR: dataDir });
  await daemon.ready();
  return daemon;
}

async function arrivesAgain(): Promise<void> {
  const seen = receiver.arrivals.length;
  await receiver.arrived(seen + 2);
}

async function stop(daemon: Daemon): Promise<void> {
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
}

const SCHEDULE = '/api/v1/schedules/local';

it(
  'with no DATABASE_URL local daemons share a PostgreSQL, which stays with the last and keeps its data',
  { tags: [LONG] },
  async () => {
    const first = await start();
    // Without those about requests: how often it was asked whether it is ready is up to this test.
    const messages = first.log().flatMap((line) => ('reqId' in line ? [] : [line.msg]));
    expect(messages).toContainEqual(expect.stringMatching(/^PostgreSQL \d+.* in .*postgres.*, port \d+/));
    expect(messages).toContainEqual(
      `firelock 0.1.0 listens on ${first.url} (dashboard ${first.url}/, API ${first.url}/api/v1, its documentation ${first.url}/docs)`,
    );
    expect(messages.length).toBeLessThanOrEqual(8);

    const second = await start();
    expect(second.url).not.toBe(first.url);
    const headers = { 'x-key': 'kept by a key of its own' };
    const body = { cron: '* * * * * *', target: { type: 'http', url: receiver.url, headers } };
    expect((await first.call('PUT', SCHEDULE, body)).status).toBe(201);
    expect(await second.call('GET', SCHEDULE)).toMatchObject({ status: 200, body: { id: 'local' } });
    await arrivesAgain();

    await stop(first);
    expect(await serverPid(dataDir)).toBeDefined();
    await arrivesAgain();
    await stop(second);
    expect(await serverPid(dataDir)).toBeUndefined();
    const sent = receiver.arrivals.length;

    const third = await start();
    expect(await third.call('GET', SCHEDULE)).toMatchObject({ status: 200, body: { version: 1 } });
    await receiver.arrived(sent + 2);
    expect(new Set(receiver.arrivals.map((arrival) => arrival.headers['x-key']))).toEqual(
      new Set(Object.values(headers)),
    );
    const key = join(dataDir, 'secret-key');
    expect((await stat(key)).mode & 0o777).toBe(0o600);
    expect(messages).toContain('created the key that encrypts stored secrets; keep it with your backups');
    expect(third.log().map(({ msg }) => msg)).not.toContain(
      'created the key that encrypts stored secrets; keep it with your backups',
    );
    const [, bytes = ''] = (await readFile(key, 'utf8')).trim().split(':');
    expect(first.lines.join('\n') + third.lines.join('\n')).not.toContain(bytes);
    expect((await third.call('PATCH', SCHEDULE, { enabled: false })).status).toBe(200);
    const runs = await until(async () => {
      const answer = await third.call('GET', `${SCHEDULE}/runs?limit=500`);
      const { items } = answer.body as { items: { id: string; status: string }[] };
      return items.every(({ status }) => status === 'succeeded') ? items : null;
    });
    const delivered = receiver.arrivals.map(({ body: { runId } }) => runId);
    expect(delivered.sort()).toEqual(runs.map(({ id }) => id).sort());
    await stop(third);
  },
);

it(
  'SIGTERM while the local PostgreSQL is being created ends with a clean stop of it',
  { tags: [LONG] },
  async () => {
    const daemon = spawnDaemon({ FIRELOCK_DATA_DIR: dataDir, PORT: '0' });
    await until(async () => (await serverPid(dataDir)) ?? null);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
    expect(await serverPid(dataDir)).toBeUndefined();
  },
);

it('an unusable data directory is named, and the process ends with code 1', async () => {
  await writeFile(join(directory, 'file'), '');
  const daemon = spawnDaemon({ FIRELOCK_DATA_DIR: join(directory, 'file'), PORT: '0' });
  expect(await daemon.exited).toBe(1);
  expect(daemon.log()).toHaveLength(1);
  expect(daemon.log()[0]).toMatchObject({
    level: 60,
    msg: expect.stringContaining(join(directory, 'file')) as string,
  });
});
