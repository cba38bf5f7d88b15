import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Clock } from '../runtime/clock.ts';
import { type Account, chooseAccount, provideBinaries } from './binaries.ts';
import { choosePort, ensureCluster, refuseOtherMajor, SUPERUSER } from './cluster.ts';
import { errorCode, isDiskFull, unlessMissing, writeNew } from './files.ts';
import { type Home, homeLink, makeDirectory, openHome, ownKey } from './home.ts';
import { formatIdentity, isAlive, ownIdentity, parseIdentity, withLock } from './lock.ts';
import { type RunningServer, type ServerDeps, settledServer, startServer, stopServer } from './postgres-server.ts';
import { superviseServer } from './supervision.ts';

/** This process's use of the local PostgreSQL. */
interface EmbeddedPostgres {
  /** Holds the password. Stays valid until `stop`, also across a restart of the server. */
  readonly url: string;
  /** In the form of FIRELOCK_SECRET_KEYS: a key that belongs to this database. */
  readonly secretKey: string;
  /** One line for the terminal, such as `PostgreSQL 18.4 in .firelock/postgres, port 23456`. */
  readonly whatRuns: string;
  /** Idempotent. Leaves the server running if other processes use it; otherwise stops it. */
  stop(): Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** Created if it does not exist. Daemons with the same directory share one server. */
  readonly dataDir: string;
  readonly clock: Clock;
  /** Gets messages about the start of the server, and about later events. */
  readonly onEvent: (message: string, details: Record<string, unknown>) => void;
}

/**
 * Joins the PostgreSQL under `dataDir`, or creates and starts it. When this resolves, the server accepts connections;
 * if it dies while this process uses it, it is started again. Every error names the fault and what to do.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, clock, onEvent } = options;
  const link = homeLink(dataDir);
  const account = await chooseAccount(join(link, 'cluster'));
  const binaries = await provideBinaries(account);
  const home = await openHome(dataDir, account);
  await refuseOtherMajor(home.cluster, binaries);
  const deps: ServerDeps = { home, binaries, account, clock };

  const onMade = (file: string) =>
    onEvent('created the key that encrypts stored secrets; keep it with your backups', { file });
  const { server, note, secretKey } = await withLock(home.directory, async () => ({
    secretKey: await ownKey({ directory: dirname(link), account, onMade }),
    ...(await joinServer(deps, onEvent)),
  }));
  const supervision = superviseServer({ ...deps, onEvent }, server);
  const password = await readFile(home.passwordFile, 'utf8');
  let stopped: Promise<void> | undefined;
  return {
    secretKey,
    url: `postgres://${SUPERUSER}:${password}@127.0.0.1:${server.port}/postgres`,
    whatRuns: describe(link, { home, account, version: binaries.version, port: server.port }),
    stop: () => {
      stopped ??= supervision.stop().then((last) => leaveServer(deps, { note, last, onEvent }));
      return stopped;
    },
  };
}

async function joinServer(
  deps: ServerDeps,
  onEvent: EmbeddedPostgresOptions['onEvent'],
): Promise<{ server: RunningServer; note: string }> {
  const { home, binaries, account } = deps;
  await ensureCluster(home, { binaries, account, sync: true });
  const note = await registerUser(home, account);
  try {
    const running = await settledServer(deps);
    const server = running ?? (await startServer(deps, await choosePort(home)));
    onEvent(running === undefined ? 'PostgreSQL started' : 'using the PostgreSQL that is already running', {
      serverPid: server.identity.pid,
      port: server.port,
    });
    return { server, note };
  } catch (error) {
    await unregisterUser(home.users, note);
    throw error;
  }
}

interface Leaving {
  note: string;
  last: RunningServer;
  onEvent: EmbeddedPostgresOptions['onEvent'];
}

async function leaveServer(deps: ServerDeps, leaving: Leaving): Promise<void> {
  const { home } = deps;
  try {
    await withLock(home.directory, () => stopUnlessUsed(deps, leaving)).catch(async (error: unknown) => {
      // A lock takes room on the disk. Nobody joins meanwhile: that takes room as well.
      if (!isDiskFull(error)) throw error;
      await stopUnlessUsed(deps, leaving);
    });
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || (await unlessMissing(stat(home.directory))) !== undefined) throw error;
    const { last, onEvent } = leaving;
    // The directory was removed while the server ran: there is nothing to save, and no lock file names it.
    if (await isAlive(last.identity)) process.kill(last.identity.pid, 'SIGQUIT');
    onEvent('PostgreSQL was ended because its directory was removed', {});
  }
}

async function stopUnlessUsed(deps: ServerDeps, { note, onEvent }: Leaving): Promise<void> {
  const others = await unregisterUser(deps.home.users, note);
  if (others > 0) {
    onEvent('PostgreSQL keeps running for the other processes that use it', { others });
    return;
  }
  await stopServer(deps);
  onEvent('PostgreSQL stopped', {});
}

function describe(
  link: string,
  { home, account, version, port }: { home: Home; account: Account | undefined; version: string; port: number },
): string {
  const path = relative(process.cwd(), link);
  const shown = path.startsWith('..') || isAbsolute(path) ? link : path;
  if (account === undefined) return `PostgreSQL ${version} in ${shown}, port ${port}`;
  const closed = home.closedDirectory;
  if (closed === undefined) return `PostgreSQL ${version} in ${shown}, port ${port}, as user ${account.name}`;
  return (
    `PostgreSQL ${version} in ${home.directory} (linked from ${shown}), port ${port}, as user ${account.name}, ` +
    `who cannot enter ${closed}`
  );
}

/**
 * Notes that this process uses the server, and returns the note's path. Call it under the home's lock, as the functions
 * below.
 */
async function registerUser(home: Home, account: Account | undefined): Promise<string> {
  await makeDirectory(home.users, account);
  const note = join(home.users, `${process.pid}-${randomUUID()}`);
  await writeNew(note, formatIdentity(await ownIdentity()));
  return note;
}

/** Removes the note, and notes of users that died without removing theirs; returns how many live users remain. */
async function unregisterUser(users: string, note: string): Promise<number> {
  await rm(note, { force: true });
  return countUsers(users);
}

/** How many live users there are; removes the notes of dead ones. */
async function countUsers(users: string): Promise<number> {
  let alive = 0;
  for (const name of (await unlessMissing(readdir(users))) ?? []) {
    const note = join(users, name);
    const identity = parseIdentity((await unlessMissing(readFile(note, 'utf8'))) ?? '');
    if (identity !== undefined && (await isAlive(identity))) alive += 1;
    else await rm(note, { force: true });
  }
  return alive;
}
