import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

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
  const child = spawn(process.execPath, [...nodeOptions, main], {
    env: { ...process.env, DATABASE_URL: databaseUrl, PORT: String(port), LOG_LEVEL: 'warn', ...variables },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  const stop = () => end('SIGTERM');
  for (let waited = 0; !(await isReady(url)); waited += 100) {
    if (child.exitCode !== null || child.pid === undefined) throw new Error('the daemon did not start');
    if (waited >= READY_LIMIT_MS) {
      await stop();
      throw new Error('the daemon does not become ready');
    }
    await sleep(100);
  }
  if (child.pid === undefined) throw new Error('the daemon did not start');
  return { pid: child.pid, url, end, stop };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
