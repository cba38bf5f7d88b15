import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';
import { childEnvironment } from './child-environment.ts';
import type { KeeperMessage, KeeperRequest } from './keeper-messages.ts';

/** The process that everything else of the demo belongs to, and that removes it all. */
export interface Keeper {
  /** Starts an instance, or starts it again at its address. */
  start(number: number): void;
  /** With -9. */
  kill(number: number): void;
  /** Idempotent. Resolves when no process and no directory is left. */
  end(): Promise<void>;
}

interface Options {
  env: Readonly<Record<string, string | undefined>>;
  hear: (message: KeeperMessage) => void;
}

/** PostgreSQL starts at once; it calls `hear` once it runs. */
export function startKeeper({ env, hear }: Options): Keeper {
  const file = join(import.meta.dirname, `keeper-process${extname(import.meta.filename)}`);
  const child = fork(file, [], {
    // A session of its own: whatever a terminal sends ends the demo, and the keeper cleans up after it.
    detached: true,
    // Not the demo's: an --env-file among them would be the caller's configuration.
    execArgv: [],
    env: childEnvironment(env),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const exited = once(child, 'exit');
  let isEnding = false;
  child.on('message', (message: KeeperMessage) => hear(message));
  void exited.then(() => {
    if (isEnding) return;
    killGroup(child.pid);
    hear({ type: 'failed', reason: 'the process that keeps PostgreSQL and the instances has ended' });
  });
  const send = (request: KeeperRequest) => {
    if (child.connected) child.send(request, () => undefined);
  };
  return {
    start: (number) => send({ type: 'start', number }),
    kill: (number) => send({ type: 'kill', number }),
    end: async () => {
      isEnding = true;
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

/** A keeper that was killed left its instances behind. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // There are none any more.
  }
}
