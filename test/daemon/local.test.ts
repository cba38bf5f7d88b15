import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { serverPid } from '../local-postgres/user-process.ts';
import { eachTest, receiverOfTest } from '../support/of-test.ts';
import { type Daemon, spawnDaemon, startDaemon } from '../support/daemon.ts';
import { createDatabase } from '../support/postgres/cluster.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

let directory: string;
let dataDir: string;
const receiver = eachTest(receiverOfTest);

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-local-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  dataDir = join(directory, 'data');
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

const HEADERS = { 'x-key': 'a secret' };

/** A daemon whose schedule fires with a secret header, and has fired. */
async function firing(): Promise<Daemon> {
  const daemon = await start();
  const target = { type: 'http', url: receiver.url, headers: HEADERS };
  expect((await daemon.call('PUT', SCHEDULE, { cron: '* * * * * *', target })).status).toBe(201);
  await arrivesAgain();
  return daemon;
}

async function firesWithHeader(variables: Record<string, string>): Promise<void> {
  const seen = receiver.arrivals.length;
  const daemon = await startDaemon(variables);
  await receiver.arrived(seen + 1);
  expect(receiver.arrivals.at(-1)?.headers).toMatchObject(HEADERS);
  await stop(daemon);
}

it('a copy of the folder goes on, with the key, as docs/restoring.md says', { tags: [LONG] }, async () => {
  await stop(await firing());
  expect(spawnSync('cp', ['-aL', dataDir, `${dataDir}-copy`]).status).toBe(0);
  await firesWithHeader({ FIRELOCK_DATA_DIR: `${dataDir}-copy` });
});

it('its data move to another server, as docs/restoring.md says', { tags: [LONG] }, async () => {
  const daemon = await firing();
  const asked = spawnDaemon({ FIRELOCK_DATA_DIR: dataDir }, 'database', 'url');
  expect(await asked.exited).toBe(0);
  const sql = postgres(asked.text.out.trim(), { max: 1, onnotice: () => undefined });
  expect(await sql`SELECT id FROM schedules`).toEqual([{ id: 'local' }]);
  await sql.end();
  await stop(daemon);
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const file = join(directory, 'firelock.dump');
  const run = async (variables: Record<string, string>, ...words: string[]) => {
    const command = spawnDaemon(variables, 'database', ...words);
    expect(await command.exited, command.text.out).toBe(0);
    return command.text.out;
  };
  expect(await run({ FIRELOCK_DATA_DIR: dataDir }, 'dump', file)).toMatch(/the key embedded-\w+, which is not in it/);
  expect(await run({ DATABASE_URL: database.url }, 'restore', file)).toMatch(/^rows restored: \d+$/m);
  const key = (await readFile(join(dataDir, 'secret-key'), 'utf8')).trim();
  await firesWithHeader({ DATABASE_URL: database.url, FIRELOCK_SECRET_KEYS: key });
});

it('SIGTERM while the local PostgreSQL is being created ends with a clean stop of it', { tags: [LONG] }, async () => {
  const daemon = spawnDaemon({ FIRELOCK_DATA_DIR: dataDir, PORT: '0' });
  await until(async () => (await serverPid(dataDir)) ?? null);
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
  expect(await serverPid(dataDir)).toBeUndefined();
});

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
