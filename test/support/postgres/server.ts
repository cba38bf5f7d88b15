import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { systemClock } from '../../../src/runtime/clock.ts';
import { giveTo, provideBinaries, spawnAs } from '../../../src/local-postgres/binaries.ts';
import { SUPERUSER, choosePort, ensureCluster, serverEnvironment } from '../../../src/local-postgres/cluster.ts';
import { type ServerDeps, findServer, startServer, stopServer } from '../../../src/local-postgres/postgres-server.ts';
import { temporaryHome } from './temporary-home.ts';

export interface TestDatabase {
  readonly url: string;
  /** Also ends connections that are still open. */
  readonly drop: () => Promise<void>;
}

/** A server of its own, without durability and thrown away in the end. */
export interface Cluster {
  /** A superuser's. */
  readonly url: string;
  /** Makes a fresh, empty database and returns its URL. */
  readonly createDatabase: () => Promise<string>;
  /** Every process of the server ends at once, as in a crash. What was committed is kept where the cluster was started to keep it. */
  readonly crash: () => Promise<void>;
  /** On the same port, after a crash. */
  readonly restart: () => Promise<void>;
  /** All its processes stand still: it takes connections, or does not, and never answers. */
  readonly freeze: () => Promise<void>;
  readonly thaw: () => Promise<void>;
  /** Restarts it as a standby that waits for ever, and can be read. */
  readonly becomeStandby: () => Promise<void>;
  /** A standby accepts writes from then on. */
  readonly promote: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

interface Options {
  survivesCrashes?: boolean;
  /** Further ones of the server. */
  settings?: readonly string[];
  /** The files of a cluster that has not been started yet: to copy them takes a tenth of what it takes to make them. */
  from?: string | undefined;
}

/** Each login takes as many rounds of a hash as there were when the password was set: 4096 are a third of what a session costs. */
const CHEAP_LOGIN = 'scram_iterations=1';
const SETTINGS = ['fsync=off', 'full_page_writes=off', CHEAP_LOGIN];

/** For what runs outside of vitest, and tests of what happens to a server; else all share the run's. */
export async function startCluster({ survivesCrashes = false, settings = [], from }: Options = {}): Promise<Cluster> {
  const { home, account, remove, removeAtOnce } = await temporaryHome('firelock-test-', {
    durable: survivesCrashes,
  });
  try {
    const binaries = await provideBinaries(account);
    const deps = { home, binaries, account, clock: systemClock };
    if (from === undefined) await ensureCluster(home, { binaries, account, sync: false });
    else await copyCluster(from, home.cluster);
    const port = await choosePort(home);
    // Written out before it is acknowledged, a commit outlives its server, if not the machine.
    const commits = `synchronous_commit=${survivesCrashes ? 'on' : 'off'}`;
    const start = async () => {
      await startServer(deps, port, [...SETTINGS, commits, ...settings]);
    };
    const stopAtExit = () => {
      crashAtOnce(deps);
      removeAtOnce();
    };
    process.once('exit', stopAtExit);
    await start();
    const password = await readFile(home.passwordFile, 'utf8');
    const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`;
    await executeAt(url, `alter role ${SUPERUSER} password '${password}'`);
    return {
      url,
      createDatabase: async () => (await createDatabaseOn(url)).url,
      crash: () => crashServer(deps),
      restart: start,
      freeze: () => signalServer(deps, 'SIGSTOP'),
      thaw: () => signalServer(deps, 'SIGCONT'),
      becomeStandby: () => restartAsStandby(deps, port),
      promote: () => pgCtl(deps, ['promote', '--wait']),
      stop: async () => {
        process.removeListener('exit', stopAtExit);
        await stopServer(deps).catch(() => crashServer(deps));
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Makes a cluster that nothing starts, for others to be copied from. */
export async function makeUnstarted(): Promise<{ path: string; remove: () => Promise<void> }> {
  const { home, account, remove, removeAtOnce } = await temporaryHome('firelock-test-', { durable: false });
  process.once('exit', removeAtOnce);
  await ensureCluster(home, { binaries: await provideBinaries(account), account, sync: false });
  return { path: home.cluster, remove };
}

/** With its owner and its rights. */
export async function copyCluster(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-Rp', from, to]);
}

function crashServer(deps: ServerDeps): Promise<void> {
  return pgCtl(deps, ['stop', '--mode=immediate', '--wait']);
}

function crashAtOnce({ home, binaries, account }: ServerDeps): void {
  const context = { cwd: home.cluster, stdio: 'ignore', ...spawnAs(account) } as const;
  spawnSync(binaries.pgCtl, ['stop', '--mode=immediate', `--pgdata=${home.data}`], context);
}

async function restartAsStandby(deps: ServerDeps, port: number): Promise<void> {
  const { home, account } = deps;
  await stopServer(deps);
  const file = join(home.data, 'standby.signal');
  await writeFile(file, '');
  await giveTo(account, file);
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200`;
  await pgCtl(deps, ['start', '--wait', `--log=${join(home.cluster, 'standby.log')}`, `--options=${options}`]);
}

async function pgCtl({ home, binaries, account }: ServerDeps, options: readonly string[]): Promise<void> {
  const context = { cwd: home.cluster, env: serverEnvironment(), ...spawnAs(account) };
  await promisify(execFile)(binaries.pgCtl, [...options, `--pgdata=${home.data}`], context);
}

async function signalServer(deps: ServerDeps, signal: NodeJS.Signals): Promise<void> {
  const pid = (await findServer(deps))?.identity.pid ?? 0;
  // The first one first, so that it starts no others meanwhile.
  process.kill(pid, signal);
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(pid)]);
  for (const child of stdout.trim().split('\n')) signalIfThere(Number(child), signal);
}

/** A session may have ended since it was listed. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export async function createDatabaseOn(adminUrl: string, template?: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withSession(adminUrl, async (sql) => {
    const [row] = await sql`select current_setting('server_version_num')::int as version`;
    // By files a copy of one with a schema takes a sixth of what it takes by way of the log; PostgreSQL 14 knows no other way.
    const byFiles = template !== undefined && Number(row?.['version']) >= 150_000;
    await sql.unsafe(
      `create database ${name} template ${template ?? 'template0'} ${byFiles ? 'strategy file_copy' : ''}`,
    );
  });
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  // As change data capture and upgrades by replication do: then no row of a table without a key can be changed or deleted.
  if (template === undefined) await executeAt(url.href, 'create publication everything for all tables');
  return { url: url.href, drop: () => executeAt(adminUrl, `drop database if exists ${name} with (force)`) };
}

export async function executeAt(url: string, statement: string): Promise<void> {
  await withSession(url, async (sql) => {
    await sql.unsafe(statement);
  });
}

async function withSession(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
