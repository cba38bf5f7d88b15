import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

const root = join(import.meta.dirname, '..', '..');

/** What the Dockerfile puts into /app, in a directory of this machine. */
export interface Image {
  has(path: string): boolean;
  /**
   * Starts the daemon as the image does, with these variables and no others but the image's own. It can write no file anywhere: as in a
   * container whose file system is read-only.
   */
  start(variables: Record<string, string>): Daemon;
  remove(): void;
}

export interface Daemon {
  /** All that it has written so far, to both streams. */
  output(): string;
  hasEnded(): boolean;
  /** The exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  signal(name: NodeJS.Signals): void;
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
    start: (variables) => follow(spawnDaemon(node, directory, variables)),
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

function spawnDaemon(node: string, directory: string, variables: Record<string, string>) {
  const unprivileged = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};
  return spawn(node, [...WRITES_NOTHING, 'dist/main.js'], {
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

function follow(child: ChildProcess & { stdout: Readable; stderr: Readable }): Daemon {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  return {
    output: () => output,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    ended: once(child, 'close').then(
      ([code, signal]: unknown[]) => (code ?? signal) as number | NodeJS.Signals,
    ),
    signal: (name) => {
      child.kill(name);
    },
  };
}
