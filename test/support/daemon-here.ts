import { onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { readConfig } from '../../src/config/config.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { isReady } from './calls.ts';
import type { Variables } from './daemon.ts';
import { type AnyDaemon, outputOf, servedAt } from './programs.ts';
import { until } from './until.ts';

export interface DaemonHere extends AnyDaemon {
  /** Resolves once /readyz says so; rejects if it gives up. */
  ready(): Promise<void>;
  /** As SIGTERM does. */
  stop(): Promise<void>;
}

/**
 * A daemon in this process: for tests that ask about the whole of it, and nothing about its process. It starts with a third of
 * the CPU. Unless told otherwise, it waits for nothing that is under way when it stops.
 */
export async function startDaemonHere(databaseUrl: string, variables: Variables = {}): Promise<DaemonHere> {
  const read = readConfig({
    ...{ DATABASE_URL: databaseUrl, PORT: '0', FIRELOCK_SHUTDOWN_SECONDS: '0' },
    ...variables,
  });
  if ('faults' in read) throw new Error(read.faults.join('\n'));
  const { config } = read;
  const lines: string[] = [];
  const { version } = manifest;
  const logger = createLogger(config.logLevel, { write: (line) => void lines.push(line.trimEnd()) });
  let ending: readonly string[] = [];
  const daemon = createDaemon({
    ...{ config, databaseUrl, version, logger },
    onStuck: (reason) => (ending = [reason]),
    onRefused: (faults) => (ending = faults),
  });
  let stopped: Promise<void> | undefined;
  const { url, signsUrl } = await daemon.start();
  return {
    ...servedAt(url),
    ...outputOf(lines, () => stopped !== undefined),
    ready: async () => {
      await until(async () => {
        if (stopped) ending = ['the daemon was stopped before it was ready'];
        if (ending.length > 0) throw new Error(ending.join('\n'));
        return (await isReady((signsUrl ?? url) + config.basePath)) || null;
      });
    },
    stop: () => (stopped ??= daemon.stop()),
  };
}

/** One that is ready, and stops with the test. */
export async function daemonHere(databaseUrl: string, variables?: Variables): Promise<DaemonHere> {
  const daemon = await startDaemonHere(databaseUrl, variables);
  onTestFinished(() => daemon.stop());
  await daemon.ready();
  return daemon;
}
