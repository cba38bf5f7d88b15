import { execFile, spawn } from 'node:child_process';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Clock } from '../runtime/clock.ts';
import { type Account, type Binaries, spawnAs } from './binaries.ts';
import { serverEnvironment } from './cluster.ts';
import { lastLines, unlessMissing } from './files.ts';
import type { Home } from './home.ts';
import { type ProcessIdentity, identifyProcess, pidExists } from './lock.ts';

/** What it takes to start, find and stop the server of one home. */
export interface ServerDeps {
  readonly home: Home;
  readonly binaries: Binaries;
  readonly account: Account | undefined;
  readonly clock: Clock;
}

export interface RunningServer {
  readonly identity: ProcessIdentity;
  readonly port: number;
  /** It accepts connections; otherwise it is starting (recovering) or stopping. */
  readonly ready: boolean;
}

const POLL_MS = 20;
const START_LIMIT_MS = 300_000;
const ORPHANS_LIMIT_MS = 30_000;
const ORPHANS_POLL_MS = 200;
const STOP_LIMIT_SECONDS = 60;

/** The living server of this home, by its own lock file; a pid that now belongs to another process does not count. */
export async function findServer({ home }: Pick<ServerDeps, 'home'>): Promise<RunningServer | undefined> {
  const lines = (await readPostmasterFile(home))?.split('\n') ?? [];
  // Line by line: pid, data directory, start time, port, socket directory, address, shared memory, status.
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const identity = await identifyProcess(pid);
  if (identity === undefined || !(await isServerOf(pid, home.data))) return undefined;
  return { identity, port, ready: lines[7]?.trim() === 'ready' };
}

/**
 * Starts the server and resolves when it accepts connections; call it under the home's lock, with no server running.
 * The server runs in a session of its own and outlives this process. Fails with the last lines of its log.
 */
export async function startServer(
  deps: ServerDeps,
  port: number,
  settings: readonly string[] = [],
): Promise<RunningServer> {
  const deadline = deps.clock.monotonic() + ORPHANS_LIMIT_MS;
  for (;;) {
    const started = await tryStart(deps, port, settings);
    if ('identity' in started) return started;
    // Backends whose server was killed end by themselves, but a busy one not at once.
    const orphans = started.log.includes('pre-existing shared memory block');
    if (!orphans || deps.clock.monotonic() >= deadline) {
      throw new Error(`PostgreSQL did not start (${started.reason}):\n${started.log}`);
    }
    await sleep(ORPHANS_POLL_MS);
  }
}

/**
 * Stops the server if it runs: open transactions are rolled back, what is committed is on disk. One that cannot write its last
 * checkpoint, since the disk is full, ends without it, and reads its log at its next start.
 */
export async function stopServer(deps: ServerDeps): Promise<void> {
  for (const mode of ['fast', 'immediate'] as const) {
    if ((await findServer(deps)) === undefined) return;
    try {
      await pgCtlStop(deps, mode);
      return;
    } catch (error) {
      if ((await findServer(deps)) === undefined) return;
      if (mode === 'immediate')
        throw new Error(`PostgreSQL did not stop:\n${await lastLines(deps.home.logFile)}`, {
          cause: error,
        });
    }
  }
}

async function pgCtlStop({ home, binaries, account }: ServerDeps, mode: 'fast' | 'immediate'): Promise<void> {
  const options = ['stop', `--mode=${mode}`, '--wait', `--timeout=${STOP_LIMIT_SECONDS}`];
  await promisify(execFile)(binaries.pgCtl, [...options, `--pgdata=${home.data}`], {
    cwd: home.cluster,
    env: serverEnvironment(),
    ...spawnAs(account),
  });
}

/** Waits until a server that another process has begun to start or stop is ready, or is gone. */
export async function settledServer(deps: ServerDeps): Promise<RunningServer | undefined> {
  const deadline = deps.clock.monotonic() + START_LIMIT_MS;
  for (;;) {
    const server = await findServer(deps);
    if (server === undefined || server.ready) return server;
    if (deps.clock.monotonic() >= deadline) {
      throw new Error(`PostgreSQL (pid ${server.identity.pid}) is neither ready nor gone: see ${deps.home.logFile}`);
    }
    await sleep(POLL_MS);
  }
}

async function tryStart(
  deps: ServerDeps,
  port: number,
  settings: readonly string[],
): Promise<RunningServer | { reason: string; log: string }> {
  const { home, clock } = deps;
  await removeMisleadingPid(home);
  const died = await spawnServer(deps, port, settings);
  const deadline = clock.monotonic() + START_LIMIT_MS;
  while (clock.monotonic() < deadline) {
    const server = await findServer(deps);
    if (server?.ready === true) return server;
    const reason = died();
    if (reason !== undefined) return { reason, log: await lastLines(home.logFile) };
    await sleep(POLL_MS);
  }
  return { reason: `not ready after ${START_LIMIT_MS / 1000} s`, log: await lastLines(home.logFile) };
}

/**
 * PostgreSQL refuses to start while the pid in its lock file exists, even as a zombie or as another process. It also
 * finds orphans of its predecessor by shared memory, without the file; they must end before another server may write.
 */
async function removeMisleadingPid(home: Home): Promise<void> {
  const pid = Number.parseInt((await readPostmasterFile(home)) ?? '', 10);
  if (pid > 0 && pidExists(pid)) await rm(postmasterFile(home), { force: true });
}

/** Returns a function that answers why the process ended, or undefined while it lives. */
async function spawnServer(
  { home, binaries, account }: ServerDeps,
  port: number,
  settings: readonly string[],
): Promise<() => string | undefined> {
  const options = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    'timezone=UTC',
    'log_timezone=UTC',
    ...settings,
  ].flatMap((setting) => ['-c', setting]);
  await unlessMissing(rename(home.logFile, `${home.logFile}.1`));
  const log = await open(home.logFile, 'wx', 0o600);
  try {
    const child = spawn(binaries.postgres, ['-D', home.data, '-p', String(port), ...options], {
      cwd: home.cluster,
      env: serverEnvironment(),
      stdio: ['ignore', log.fd, log.fd],
      // A session of its own: Ctrl-C in the terminal of one daemon must not reach the server that all share.
      detached: true,
      windowsHide: true,
      ...spawnAs(account),
    });
    child.unref();
    let death: string | undefined;
    child.once('error', (error) => (death = error.message));
    child.once('exit', (code, signal) => (death = signal ?? `exit code ${code ?? 'unknown'}`));
    return () => death;
  } finally {
    await log.close();
  }
}

/**
 * The server's working directory is its data directory, whichever path led to it. If that cannot be read (no /proc, or
 * root without the right to trace), its command line names the directory as we gave it.
 */
async function isServerOf(pid: number, data: string): Promise<boolean> {
  if (process.platform === 'win32') return true;
  try {
    const [theirs, ours] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(data)]);
    return theirs.dev === ours.dev && theirs.ino === ours.ino;
  } catch {
    return (await commandLine(pid)).includes(data);
  }
}

async function commandLine(pid: number): Promise<string> {
  if (process.platform === 'linux') return (await readIfPossible(`/proc/${pid}/cmdline`)).replaceAll('\0', ' ');
  try {
    return (await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout;
  } catch {
    return '';
  }
}

async function readIfPossible(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}

function readPostmasterFile(home: Home): Promise<string | undefined> {
  return unlessMissing(readFile(postmasterFile(home), 'utf8'));
}

function postmasterFile(home: Home): string {
  return join(home.data, 'postmaster.pid');
}
