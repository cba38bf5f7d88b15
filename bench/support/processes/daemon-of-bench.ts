import { resolve } from 'node:path';
import type { Bench } from '../../scenario.ts';
import { type Daemon, startDaemon } from './daemon.ts';
import type { BenchDatabase } from './postgres.ts';

/** The daemon that is measured, on this database, profiled where that is wanted. */
export function startDaemonOf(
  { main, profile }: Bench,
  database: BenchDatabase,
  variables: Record<string, string> = {},
): Promise<Daemon> {
  const nodeOptions = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`];
  return startDaemon({ main, databaseUrl: database.url, nodeOptions, variables });
}
