/**
 * The tests, with PgBouncer in transaction mode between them and a throw-away PostgreSQL. What brings a server of its
 * own (the embedded one, servers that are crashed) goes straight to that; the fault campaign is left out.
 *
 *     npm run test:pgbouncer [-- arguments of vitest]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { startCluster } from '../test/support/postgres/server.ts';
import { findProgram } from './support/programs-here.ts';
import { type Account, chooseAccount, giveTo, spawnAs } from '../src/local-postgres/binaries.ts';
import { freePort } from '../test/support/loopback.ts';

const root = join(import.meta.dirname, '..');
const program = findProgram('pgbouncer');
if (program === undefined) {
  console.error('there is no pgbouncer; install it (Debian, Ubuntu: apt-get install pgbouncer)');
  process.exitCode = 2;
} else {
  process.exitCode = await runTests(program);
}

async function runTests(pgbouncer: string): Promise<number> {
  const cluster = await startCluster();
  try {
    const pooler = await startPgBouncer(pgbouncer, cluster.url);
    try {
      return await vitest(pooler.url);
    } finally {
      await pooler.stop();
    }
  } finally {
    await cluster.stop();
  }
}

async function vitest(url: string): Promise<number> {
  const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const options = ['run', '--exclude=test/chaos/**', ...process.argv.slice(2)];
  const child = spawn(process.execPath, [program, ...options], {
    cwd: root,
    env: { ...process.env, FIRELOCK_TEST_DATABASE_URL: url, FIRELOCK_TEST_POOLER: '1' },
    stdio: 'inherit',
  });
  // From a terminal the tests hear of it themselves; the servers must outlive them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

interface PgBouncer {
  /** As that of the server, by way of the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** A pooler in transaction mode on loopback, for every database of the server that there is or will be. */
async function startPgBouncer(program: string, serverUrl: string): Promise<PgBouncer> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-pgbouncer-')));
  // It refuses to run as root, and the user it runs as then has to get in.
  await chmod(directory, 0o755);
  const account = await chooseAccount(directory + '/none');
  const port = await freePort();
  const configuration = await configure(directory, { server: new URL(serverUrl), port, account });
  const log = openSync(join(directory, 'log'), 'a');
  const child = spawn(program, [configuration], {
    cwd: directory,
    stdio: ['ignore', log, log],
    ...spawnAs(account),
  });
  let stopping = false;
  const ended = once(child, 'exit').then(([code, signal]: unknown[]) => {
    if (stopping) return;
    const said = readFileSync(join(directory, 'log'), 'utf8').split('\n').slice(-20).join('\n');
    console.error(`PgBouncer ended with ${String(code ?? signal)}:\n${said}`);
  });
  const stop = async () => {
    stopping = true;
    // Not SIGINT, which waits for clients to leave.
    child.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true });
  };
  const url = new URL(serverUrl);
  url.port = String(port);
  while (!(await answers(url.href))) {
    if (child.exitCode !== null || child.signalCode !== null) {
      await stop();
      throw new Error('PgBouncer did not start');
    }
    await sleep(50);
  }
  return { url: url.href, stop };
}

interface Settings {
  server: URL;
  port: number;
  account: Account | undefined;
}

async function configure(directory: string, { server, port, account }: Settings): Promise<string> {
  const configuration = join(directory, 'pgbouncer.ini');
  const users = join(directory, 'users');
  await writeFile(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`, { mode: 0o600 });
  await giveTo(account, users);
  await writeFile(
    configuration,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
max_client_conn = 2000
; Every test has a database of its own: what the last ones used must not keep the server's connections.
default_pool_size = 8
server_idle_timeout = 2
`,
  );
  return configuration;
}

async function answers(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, prepare: false });
  try {
    await sql`SELECT 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
