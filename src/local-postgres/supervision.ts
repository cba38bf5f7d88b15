import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unlessMissing } from './files.ts';
import { isStillAlive, withLock } from './lock.ts';
import { isFree } from './cluster.ts';
import type { RunningServer, ServerDeps } from './postgres-server.ts';
import { settledServer, startServer } from './postgres-server.ts';

interface SupervisionDeps extends ServerDeps {
  readonly onEvent: (message: string, details: Record<string, unknown>) => void;
}

interface Supervision {
  /** Resolves, when it has ended, with the server that was last seen alive. */
  stop(): Promise<RunningServer>;
}

const CHECK_INTERVAL_MS = 500;

/**
 * Watches the server and starts it again, on the same port, if it dies. Every user of the server does this; the lock
 * lets one of them act, and the others find it running.
 */
export function superviseServer(deps: SupervisionDeps, server: RunningServer): Supervision {
  const abort = new AbortController();
  const ended = supervise(deps, server, abort.signal);
  return {
    stop: () => {
      abort.abort();
      return ended;
    },
  };
}

async function supervise(deps: SupervisionDeps, first: RunningServer, signal: AbortSignal): Promise<RunningServer> {
  let server = first;
  let reported: string | undefined;
  while (await waitUnlessStopped(signal)) {
    try {
      server = await check(deps, server);
      reported = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      // It tries again every half second: the message is written once.
      if (reason !== reported) deps.onEvent('PostgreSQL died and could not be started again yet', { reason });
      // oxlint-disable-next-line no-useless-assignment -- the next round reads it
      reported = reason;
    }
  }
  return server;
}

async function check(deps: SupervisionDeps, server: RunningServer): Promise<RunningServer> {
  if (await isStillAlive(server.identity)) return server;
  return withLock(deps.home.directory, async () => {
    const running = await settledServer(deps);
    if (running !== undefined) {
      if (running.port !== server.port) {
        throw new Error(`it runs on port ${running.port}, not on ${server.port} any more: restart this daemon`);
      }
      return running;
    }
    return restart(deps, server.port);
  });
}

async function restart(deps: SupervisionDeps, port: number): Promise<RunningServer> {
  const { home } = deps;
  if ((await unlessMissing(readFile(join(home.data, 'PG_VERSION')))) === undefined) {
    throw new Error(`the data in ${home.data} are gone`);
  }
  if (!(await isFree(port))) throw new Error(`port ${port} is taken by another process`);
  const server = await startServer(deps, port);
  deps.onEvent('PostgreSQL had died and was started again', { serverPid: server.identity.pid, port });
  return server;
}

async function waitUnlessStopped(signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(CHECK_INTERVAL_MS, undefined, { signal, ref: false });
  } catch {
    // Aborted.
  }
  return !signal.aborted;
}
