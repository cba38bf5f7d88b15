import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface Packed {
  name: string;
  version: string;
  filename: string;
  /** Bytes: of the archive, and of what it becomes. */
  size: number;
  unpackedSize: number;
  files: { path: string }[];
}

/** Makes the archive of a package as npm would publish it; `--ignore-scripts` for one that is built already. */
export function pack(folder: string, destination: string, ...options: string[]): Packed {
  mkdirSync(destination, { recursive: true });
  const text = npm(folder, 'pack', '--json', '--pack-destination', destination, ...options);
  const [packed] = JSON.parse(text.slice(text.search(/^\[/m))) as [Packed];
  return packed;
}

/** Installs an archive into a folder, with its dependencies from the registry, as `npm install firelock` does. */
export function install(archive: string, folder: string, ...options: string[]): void {
  mkdirSync(folder, { recursive: true });
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  npm(folder, 'install', ...quiet, ...options, '--prefix', folder, archive);
}

/** As a user's shell would have it who uses this process's Node, and nothing else of this process. */
export function shellOf(folder: string): { cwd: string; env: NodeJS.ProcessEnv } {
  const PATH = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
  return { cwd: folder, env: { PATH, HOME: process.env['HOME'], npm_config_yes: 'false' } };
}

/** The command that `npx firelock` runs in a folder where the package is installed. */
export function commandIn(folder: string): string {
  return join(folder, 'node_modules', '.bin', 'firelock');
}

function npm(cwd: string, ...words: string[]): string {
  return execFileSync('npm', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
