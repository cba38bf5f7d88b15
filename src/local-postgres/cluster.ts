import { execFile } from 'node:child_process';
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Account, type Binaries, giveTo, spawnAs } from './binaries.ts';
import { syncToDisk, unlessMissing, writeNew } from './files.ts';
import type { Home } from './home.ts';

export const SUPERUSER = 'firelock';
const DRAFT = 'cluster.draft-';

/** Fails if there is data of another major version, which these binaries could not read. Changes nothing. */
export async function refuseOtherMajor(clusterDirectory: string, binaries: Binaries): Promise<void> {
  const text = await unlessMissing(readFile(join(clusterDirectory, 'data', 'PG_VERSION'), 'utf8'));
  const major = text?.trim();
  if (major === undefined || major === String(binaries.major)) return;
  throw new Error(
    `the data in ${clusterDirectory} are of PostgreSQL ${major}, the installed binaries are ${binaries.version}: ` +
      `install firelock with the PostgreSQL ${major} that wrote them, or dump and load the data, or remove the ` +
      'directory to begin with an empty database',
  );
}

/**
 * Makes the cluster if there is none; call it under the home's lock. The cluster appears complete, by a rename, or not
 * at all: what a power cut leaves half-done is thrown away. `sync: false` is for clusters that need not survive one.
 */
export async function ensureCluster(
  home: Home,
  { binaries, account, sync }: { binaries: Binaries; account: Account | undefined; sync: boolean },
): Promise<void> {
  await removeDrafts(home);
  if ((await unlessMissing(readdir(home.cluster))) !== undefined) return;
  const draft = join(home.directory, `${DRAFT}${randomUUID()}`);
  await mkdir(draft, { mode: 0o700 });
  await writeFile(join(draft, 'password'), randomBytes(24).toString('hex'), { mode: 0o600 });
  await giveTo(account, join(draft, 'password'));
  await giveTo(account, draft);
  await initdb(draft, { binaries, account, sync });
  // initdb has synced the data, but not our files.
  if (sync) for (const path of [join(draft, 'password'), draft]) await syncToDisk(path);
  await rename(draft, home.cluster);
  if (sync) await syncToDisk(home.directory);
}

/** The only variables that the server gets: it runs as another user, which must not see our secrets. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot', 'TEMP'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(kept), LC_ALL: 'C', TZ: 'UTC' };
}

async function removeDrafts(home: Home): Promise<void> {
  for (const name of await readdir(home.directory)) {
    if (!name.startsWith(DRAFT)) continue;
    // An initdb whose parent was killed may still write there; without its files it soon ends.
    await rm(join(home.directory, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

async function initdb(
  draft: string,
  { binaries, account, sync }: { binaries: Binaries; account: Account | undefined; sync: boolean },
): Promise<void> {
  const options = [
    `--pgdata=${join(draft, 'data')}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${join(draft, 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same sort order and letter rules on every machine, whatever its C library and ICU.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(sync ? [] : ['--no-sync']),
  ];
  try {
    await promisify(execFile)(binaries.initdb, options, {
      cwd: draft,
      env: serverEnvironment(),
      ...spawnAs(account),
    });
  } catch (error) {
    const reason = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    throw new Error(`initdb could not make the database in ${draft}:\n${reason}`, { cause: error });
  }
}

/** Below the ports that systems give to outgoing connections, so that none of these blocks a restart. */
const LOWEST = 20_000;
const HIGHEST = 29_999;

/** The previous port if it is free, else another free one, which is then remembered. */
export async function choosePort(home: Home): Promise<number> {
  const remembered = Number(await unlessMissing(readFile(home.portFile, 'utf8')));
  if (remembered > 0 && remembered < 65_536 && (await isFree(remembered))) return remembered;
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (await isFree(port)) {
      await remember(home, port);
      return port;
    }
  }
  throw new Error(`no free port on 127.0.0.1 between ${LOWEST} and ${HIGHEST}`);
}

export async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

async function remember(home: Home, port: number): Promise<void> {
  const draft = `${home.portFile}.draft-${randomUUID()}`;
  await writeNew(draft, `${port}\n`);
  await rename(draft, home.portFile);
}
