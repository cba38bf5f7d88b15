import { join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { freePort } from '../../../test/support/loopback.ts';
import { ready, startProgram } from '../../../test/support/programs.ts';
import type { Bench } from '../../scenario.ts';
import type { BenchDatabase } from './postgres.ts';

export interface Daemon {
  pid: number;
  url: string;
  /** Resolves when it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
  stop(): Promise<void>;
}

interface DaemonOptions {
  main: string;
  databaseUrl: string;
  nodeOptions: readonly string[];
  /** Beside this process's environment. */
  variables?: Record<string, string>;
}

const READY_LIMIT_MS = 30_000;

/** Starts the built daemon with this process's environment (FIRELOCK_* to try) and waits until it is ready. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { main, databaseUrl, nodeOptions, variables } = options;
  const port = await freePort();
  const own = { DATABASE_URL: databaseUrl, PORT: String(port), LOG_LEVEL: 'warn', ...variables };
  const program = startProgram({
    main,
    nodeOptions,
    variables: { ...process.env, ...own },
    output: 'inherit',
  });
  const url = `http://127.0.0.1:${port}`;
  const end = async (signal: NodeJS.Signals) => {
    program.signal(signal);
    await program.exited;
  };
  const stop = () => end('SIGTERM');
  try {
    await ready(program, url, READY_LIMIT_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: program.pid, url, end, stop };
}

/** The daemon that is measured, on this database, profiled where that is wanted. */
export function startDaemonOf(
  { main, profile }: Bench,
  database: BenchDatabase,
  variables: Record<string, string> = {},
): Promise<Daemon> {
  const nodeOptions = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`];
  return startDaemon({ main, databaseUrl: database.url, nodeOptions, variables });
}

const root = join(import.meta.dirname, '..', '..', '..');

interface Build {
  main: string;
  remove(): void;
}

/** Builds the daemon as `npm run build` does, into a folder of its own: dist/ may be in use. */
export function buildDaemon(): Build {
  const directory = mkdtempSync(join(tmpdir(), 'firelock-bench-build-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  for (const part of ['package.json', 'drizzle']) {
    cpSync(join(root, part), join(directory, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(directory, 'dist')];
  const { status } = spawnSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
  if (status !== 0) {
    remove();
    throw new Error('the daemon does not build');
  }
  return { main: join(directory, 'dist', 'main.js'), remove };
}
