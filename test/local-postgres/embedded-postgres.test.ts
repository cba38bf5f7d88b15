// @module-tag long
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { chooseAccount } from '../../src/local-postgres/binaries.ts';
import { homeLink, openHome } from '../../src/local-postgres/home.ts';
import { identifyProcess } from '../../src/local-postgres/lock.ts';
import { copyCluster } from '../support/postgres/server.ts';
import type { UserProcess } from './user-process.ts';
import { readyUser, serverPid, startUser } from './user-process.ts';

const isRoot = process.getuid?.() === 0;
let parent: string;
let dataDir: string;
let users: UserProcess[];

beforeEach(async () => {
  parent = await realpath(await mkdtemp(join(tmpdir(), 'firelock-embedded-')));
  await chmod(parent, 0o755);
  dataDir = join(parent, '.firelock');
  users = [];
});

afterEach(async () => {
  for (const user of users) await user.end('SIGKILL');
  const pid = await serverPid(dataDir);
  if (pid !== undefined) await killServer(pid);
  await removeHome();
  await rm(parent, { recursive: true, force: true, maxRetries: 10 });
});

test('data are kept between starts, on the same port', async () => {
  await haveCluster();
  const first = await ready();
  await run(first.url, 'create table kept as select 42 as answer');
  await first.end('SIGTERM');
  expect(await serverPid(dataDir)).toBeUndefined();

  const second = await ready();
  expect(second.url).toBe(first.url);
  expect(await run(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
});

test('the server is UTF-8, in UTC, in no country, and asks for the password', async () => {
  await haveCluster();
  const { url } = await ready();
  const [row] = await run(
    url,
    `select current_setting('server_encoding') as encoding, current_setting('TimeZone') as zone, datlocale as locale,
            current_setting('fsync') as fsync, current_setting('listen_addresses') as addresses
       from pg_database where datname = current_database()`,
  );
  expect(row).toEqual({
    encoding: 'UTF8',
    zone: 'UTC',
    locale: 'C.UTF-8',
    fsync: 'on',
    addresses: '127.0.0.1',
  });
  const withoutPassword = new URL(url);
  withoutPassword.password = 'wrong';
  await expect(run(withoutPassword.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  expect((await stat(join(dataDir, 'postgres', 'cluster', 'password'))).mode & 0o777).toBe(0o600);
});

test('users that start at once on an empty directory share one server', async () => {
  const all = await Promise.all([ready(), ready(), ready()]);
  expect(new Set(all.map(({ url }) => url)).size).toBe(1);
  const started = all.filter(({ lines }) => lines.some(({ event }) => event === 'PostgreSQL started'));
  expect(started).toHaveLength(1);
});

test('a user that leaves does not stop the server of the others; the last one does', async () => {
  await haveCluster();
  const first = await ready();
  const pid = await serverPid(dataDir);
  const second = await ready();
  await first.end('SIGTERM');
  expect(await run(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect(await serverPid(dataDir)).toBe(pid);

  await second.end('SIGTERM');
  expect(second.lines.at(-1)?.event).toBe('PostgreSQL stopped');
  expect(await serverPid(dataDir)).toBeUndefined();
});

test('Ctrl-C or kill -9 of the user that started the server leaves it to the other, who stops it in the end', async () => {
  await haveCluster();
  const first = await ready();
  const pid = await serverPid(dataDir);
  const second = await ready();
  const third = await ready();
  await first.end('SIGINT');
  await second.end('SIGKILL');
  expect(await run(third.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect(await serverPid(dataDir)).toBe(pid);

  await third.end('SIGTERM');
  expect(await serverPid(dataDir)).toBeUndefined();
});

test('the server of a user killed with -9 is joined by the next start, and stopped by it', async () => {
  await haveCluster();
  const first = await ready();
  const pid = await serverPid(dataDir);
  await first.end('SIGKILL');

  const second = await ready();
  expect(second.url).toBe(first.url);
  expect(await serverPid(dataDir)).toBe(pid);
  await second.end('SIGTERM');
  expect(await serverPid(dataDir)).toBeUndefined();
});

test('a note of a user whose pid now belongs to another process keeps no server alive', async () => {
  await haveCluster();
  const user = await ready();
  await writeFile(join(dataDir, 'postgres', 'users', `${process.pid}-left-over`), `${process.pid}\nlong ago\n`);
  await user.end('SIGTERM');
  expect(await serverPid(dataDir)).toBeUndefined();
});

test('a server killed with -9 is started again on its port while users live', async () => {
  await haveCluster();
  const [first, second] = [await ready(), await ready()];
  await run(first.url, 'create table kept as select 42 as answer');
  const pid = await serverPid(dataDir);
  if (pid === undefined) throw new Error('no server');
  process.kill(pid, 'SIGKILL');

  await Promise.race([first, second].map((user) => user.heard('PostgreSQL had died and was started again')));
  expect(await run(first.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  expect(await serverPid(dataDir)).not.toBe(pid);
  await first.end('SIGTERM');
  await second.end('SIGTERM');
  expect(await serverPid(dataDir)).toBeUndefined();
});

test('a lock file that names a living foreign process stops no start and harms no process', async () => {
  await haveCluster();
  const user = await ready();
  const pid = await serverPid(dataDir);
  await user.end('SIGKILL');
  if (pid !== undefined) await killServer(pid);
  const { uid, gid } = await stat(join(dataDir, 'postgres', 'cluster'));
  const foreigner = spawn('sleep', ['60'], isRoot ? { uid, gid } : {});
  try {
    const lockFile = join(dataDir, 'postgres', 'cluster', 'data', 'postmaster.pid');
    const text = await readFile(lockFile, 'utf8');
    await writeFile(lockFile, text.replace(/^\d+/, String(foreigner.pid)));

    const next = await ready();
    expect(await run(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await next.end('SIGTERM');
    expect(foreigner.exitCode ?? foreigner.signalCode).toBeNull();
  } finally {
    foreigner.kill('SIGKILL');
    await once(foreigner, 'close');
  }
});

test('an initdb that was cut off in the middle is thrown away', async () => {
  const home = join(dataDir, 'postgres');
  const user = startUser(dataDir);
  users.push(user);
  while (!(await namesIn(home)).some((name) => name.startsWith('cluster.draft-'))) await sleep(5);
  await user.end('SIGKILL');
  expect(await namesIn(home)).not.toContain('cluster');

  const next = await ready();
  expect(await run(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect((await namesIn(home)).filter((name) => name.startsWith('cluster'))).toEqual(['cluster']);
});

test('data of another major version are refused, and left as they are', async () => {
  const data = join(dataDir, 'postgres', 'cluster', 'data');
  await mkdir(data, { recursive: true });
  if (isRoot) await chown(join(data, '..'), 65_534, 65_534);
  await writeFile(join(data, 'PG_VERSION'), '17\n');
  const user = startUser(dataDir);
  users.push(user);
  const { message } = await user.heard('failed');
  expect(message).toMatch(/are of PostgreSQL 17, the installed binaries are 18/);
  expect(await namesIn(join(dataDir, 'postgres'))).toEqual(['cluster']);
  expect(await namesIn(data)).toEqual(['PG_VERSION']);
});

test('a port that was taken since the last start is replaced by another', async () => {
  await haveCluster();
  const first = await ready();
  await first.end('SIGTERM');
  const other = spawn(process.execPath, [
    '-e',
    `require('net').createServer().listen(${new URL(first.url).port}, '127.0.0.1', () => console.log('taken'))`,
  ]);
  try {
    await once(other.stdout, 'data');
    const second = await ready();
    expect(new URL(second.url).port).not.toBe(new URL(first.url).port);
    expect(await run(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  } finally {
    other.kill('SIGKILL');
    await once(other, 'close');
  }
});

describe('as root, with the data where only root can enter', () => {
  beforeEach(async ({ skip }) => {
    if (!isRoot) skip('only as root');
    await chmod(parent, 0o700);
  });

  test('the server lives elsewhere, says so, and is found again', async () => {
    const first = await ready();
    expect(first.whatRuns).toContain(`cannot enter ${parent}`);
    expect(await realpath(join(dataDir, 'postgres'))).toMatch(/^\/var\/lib\/firelock\/[0-9a-f]{16}$/);
    await run(first.url, 'create table kept as select 42 as answer');
    await first.end('SIGTERM');

    const second = await ready();
    expect(await run(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await second.end('SIGTERM');
    expect(await serverPid(dataDir)).toBeUndefined();
  });
});

/** As an earlier start has left it: making it takes most of what such a test takes. */
async function haveCluster(): Promise<void> {
  const { cluster } = await openHome(dataDir, await chooseAccount(homeLink(dataDir)));
  await copyCluster(inject('unstarted'), cluster);
}

async function ready(): ReturnType<typeof readyUser> {
  const user = await readyUser(dataDir);
  users.push(user);
  return user;
}

async function run(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function killServer(pid: number): Promise<void> {
  if ((await identifyProcess(pid)) === undefined) return;
  process.kill(pid, 'SIGKILL');
  while ((await identifyProcess(pid)) !== undefined) await sleep(10);
}

async function removeHome(): Promise<void> {
  try {
    await rm(await realpath(join(dataDir, 'postgres')), { recursive: true, maxRetries: 10 });
  } catch {
    // Never made.
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch {
    return [];
  }
}
