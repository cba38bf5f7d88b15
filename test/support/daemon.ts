import { inject, onTestFinished } from 'vitest';
import { type Daemon, type Program, listening, startProgram } from './programs.ts';
import { QUICK_START } from './runner/quick-start.ts';

export type { Daemon } from './programs.ts';
export type Variables = Record<string, string>;

/** Starts the daemon, or one of its commands. What is left of it at the end of the test is killed. */
export function spawnDaemon(variables: Variables, ...args: string[]): Program {
  const main = inject('daemonMain');
  const program = startProgram({ main, variables: { ...QUICK_START, ...variables }, args });
  onTestFinished(() => program.kill());
  return program;
}

/** Starts a daemon and resolves when it listens, on a free port unless PORT says otherwise; it may not be ready yet. */
export function startDaemon(variables: Variables): Promise<Daemon> {
  return listening(spawnDaemon({ PORT: '0', ...variables }));
}

/** A daemon on this database, ready. */
export async function readyDaemon(databaseUrl: string, variables: Variables = {}): Promise<Daemon> {
  const daemon = await startDaemon({ DATABASE_URL: databaseUrl, ...variables });
  await daemon.ready();
  return daemon;
}

/** Runs a command on this database to its end. */
export async function runCommand(databaseUrl: string, args: readonly string[], variables: Variables = {}) {
  const program = spawnDaemon({ DATABASE_URL: databaseUrl, ...variables }, ...args);
  const code = await program.exited;
  return { code, ...program.text };
}
