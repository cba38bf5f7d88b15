import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Program, startCommand } from '../../test/support/programs.ts';

const root = join(import.meta.dirname, '..', '..');

/** What the Dockerfile puts into /app, in a directory of this machine. */
export interface Image {
  has(path: string): boolean;
  /**
   * Starts the daemon as the image does, with these variables and no others but the image's own. It can write no file anywhere: as in a
   * container whose file system is read-only.
   */
  start(variables: Record<string, string>): Program;
  remove(): void;
}

/** Throws if dist/ is missing or the production packages cannot be installed. */
export function buildImage(): Image {
  if (!existsSync(join(root, 'dist', 'main.js')))
    throw new Error('There is no dist/main.js: run `npm run build` first.');
  const directory = mkdtempSync(join(tmpdir(), 'firelock-image-'));
  // An ordinary user has to reach it.
  chmodSync(directory, 0o755);
  for (const part of ['package.json', 'package-lock.json', 'dist', 'drizzle']) {
    cpSync(join(root, part), join(directory, part), { recursive: true });
  }
  const install = ['ci', '--omit=dev', '--omit=optional', '--ignore-scripts', '--prefix', directory];
  const { status } = spawnSync('npm', install, { cwd: directory, stdio: 'inherit' });
  if (status !== 0) throw new Error(`npm ${install.join(' ')} failed.`);
  // This Node may lie where only root can enter.
  const node = join(directory, 'node');
  copyFileSync(process.execPath, node);
  // What Node lets through, such as a library in C, the system refuses.
  setWritable(directory, false);
  return {
    has: (path) => existsSync(join(directory, path)),
    start: (variables) => startDaemon(node, directory, variables),
    remove: () => {
      setWritable(directory, true);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function setWritable(directory: string, writable: boolean): void {
  spawnSync('chmod', ['-R', writable ? 'u+w' : 'a-w', directory], { stdio: 'inherit' });
}

/** Node refuses all else: files that are written, and programs that are started (Node.js documentation, "Permissions"). */
const WRITES_NOTHING = ['--permission', '--allow-fs-read=*', '--allow-worker'];

function startDaemon(node: string, directory: string, variables: Record<string, string>): Program {
  const unprivileged = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};
  return startCommand(node, [...WRITES_NOTHING, 'dist/main.js'], {
    cwd: directory,
    // Where a program writes that finds no better place.
    env: {
      PATH: process.env['PATH'],
      HOME: directory,
      TMPDIR: directory,
      NODE_ENV: 'production',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...unprivileged,
  });
}
