import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export interface Packages {
  directory: string;
  version(name: string): string;
  remove(): void;
}

const LIMIT_MS = 180_000;

/** Installs the peers, of exactly these versions, with what a user of them gets today, outside the checkout; throws with what npm says of it. */
export async function installPackages(): Promise<Packages> {
  const directory = mkdtempSync(join(tmpdir(), 'firelock-bench-peers-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    copyFileSync(join(import.meta.dirname, 'package.json'), join(directory, 'package.json'));
    await npmInstall(directory);
  } catch (error) {
    remove();
    throw error;
  }
  return {
    directory,
    version: (name) => versionOf(join(directory, 'node_modules', name, 'package.json')),
    remove,
  };
}

/** Resolves what was installed there; the project itself must be complete without it. */
export function requireFrom(directory: string): (name: string) => unknown {
  return createRequire(join(directory, 'package.json'));
}

function versionOf(path: string): string {
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

async function npmInstall(directory: string): Promise<void> {
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1'];
  const npm = spawn('npm', ['install', '--no-package-lock', '--prefix', directory, ...options], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: LIMIT_MS,
  });
  const [[code], output] = await Promise.all([once(npm, 'close') as Promise<[number | null]>, text(npm.stderr)]);
  if (code === 0) return;
  throw new Error(reasonIn(output) || `npm install ended with ${code ?? `no answer in ${LIMIT_MS / 1000} s`}`);
}

/** The first lines that say something to a person. */
function reasonIn(output: string): string {
  const lines = output.split('\n').flatMap((line) => /^npm error (?!syscall|errno)(\S.*)$/.exec(line)?.[1] ?? []);
  return lines.slice(0, 2).join(': ');
}
