import { resolve } from 'node:path';
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
