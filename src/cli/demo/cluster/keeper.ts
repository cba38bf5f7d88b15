import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname, join } from 'node:path';

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

/** What programs and Node itself need. Nothing of the caller's own configuration of firelock reaches the demo's instances. */
const KEPT = [
  'PATH',
  'HOME',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SystemRoot',
  'LD_LIBRARY_PATH',
  'NODE_OPTIONS',
  'NODE_COMPILE_CACHE',
  // As root, PostgreSQL runs as the user who called sudo.
  'SUDO_UID',
  'SUDO_GID',
];

export function childEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    KEPT.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** What the demo asks its keeper for. */
export type KeeperRequest = { type: 'start'; number: number } | { type: 'kill'; number: number };

/** What the keeper tells the demo. Instances are numbered from 1; one goes on under its number after a restart. */
export type KeeperMessage =
  | { type: 'database'; whatRuns: string }
  | { type: 'failed'; reason: string }
  | { type: 'started'; number: number; pid: number; url: string }
  /** By its log: the id under which it is known to the others, anew after each start. */
  | { type: 'registered'; number: number; instanceId: string }
  /** By the log of one that has noticed. */
  | { type: 'declaredDead'; instanceIds: string[] }
  | { type: 'ended'; number: number; lastLines: string[] };
