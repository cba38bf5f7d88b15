import { spawnSync } from 'node:child_process';
import { forkModule, nextMessage } from '../support/processes/child.ts';

interface Redis {
  port: number;
  pid: number;
  stop(): Promise<void>;
}

export interface FromRedis {
  type: 'ready';
  port: number;
  pid: number;
}

/** Null without a redis-server on PATH. */
export function redisVersion(): string | null {
  const { stdout, status } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return status === 0 ? (/v=(\S+)/.exec(stdout)?.[1] ?? 'of unknown version') : null;
}

/** A server with nothing in it, which ends with this process at the latest. */
export async function startRedis(): Promise<Redis> {
  const keeper = forkModule(new URL('redis-process.ts', import.meta.url), []);
  const { port, pid } = await nextMessage<FromRedis>(keeper.process);
  return { port, pid, stop: () => keeper.stop() };
}
