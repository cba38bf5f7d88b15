import { readFileSync, rmSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandOf, pidsOfTree } from '../../../bench/support/measures/cpu.ts';
import { type Account, giveTo, spawnAs } from '../../../src/local-postgres/binaries.ts';
import { type Program, startCommand } from '../../support/programs.ts';
import { PORTS, type PatroniOptions, patroniConfiguration } from './patroni-configuration.ts';

/** One PostgreSQL with its Patroni: what stands on one machine of a real cluster, and falls with it. */
export interface PatroniNode {
  readonly name: string;
  readonly address: string;
  start(): Promise<void>;
  /** As if the machine lost its power. */
  kill(): Promise<void>;
  /** As if its virtual machine was paused: all connections stay open, and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Its standbys get nothing more, and it does not know. */
  freezeSenders(): void;
  /** Whether it has the leader's lock, and accepts writes. */
  isPrimary(): Promise<boolean>;
  /** Without waiting, also if this process is about to end. */
  destroy(): void;
}

interface NodeOptions extends PatroniOptions {
  program: string;
  account: Account | undefined;
}

export function createNode(options: NodeOptions): PatroniNode {
  const { name, address, directory, account } = options;
  const file = join(directory, 'patroni.json');
  let patroni: Program | undefined;

  /** PostgreSQL is no child of Patroni's: it has a session of its own, and outlives it. */
  const pids = (): number[] => [
    ...(patroni?.isRunning() === true ? pidsOfTree(patroni.pid) : []),
    ...pidsOfTree(postmasterOf(directory)),
  ];
  /** Parents first. Repeated, as one that was not reached yet may have started another. */
  const signalAll = (signal: NodeJS.Signals): void => {
    const reached = new Set<number>();
    for (let found = pids(); found.some((pid) => !reached.has(pid)); found = pids()) {
      for (const pid of found) {
        reached.add(pid);
        signalTo(pid, signal);
      }
    }
  };

  return {
    name,
    address,
    start: async () => {
      await writeFile(file, JSON.stringify(patroniConfiguration(options), null, 2), { mode: 0o600 });
      await giveTo(account, file);
      const log = await open(join(directory, 'patroni.log'), 'a');
      patroni = startCommand(options.program, [file], {
        cwd: directory,
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: directory, LANG: 'C.UTF-8' },
        stdio: ['ignore', log.fd, log.fd],
        ...spawnAs(account),
      });
      await log.close();
    },
    kill: async () => {
      signalAll('SIGKILL');
      await patroni?.exited;
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    freezeSenders: () => {
      for (const pid of pidsOfTree(postmasterOf(directory)))
        if (commandOf(pid).includes(' walsender ')) signalTo(pid, 'SIGSTOP');
    },
    isPrimary: async () => {
      const answer = await fetch(`http://${address}:${PORTS.patroni}/primary`, {
        method: 'OPTIONS',
        signal: AbortSignal.timeout(1_000),
      }).catch(() => null);
      return answer?.status === 200;
    },
    destroy: () => {
      signalAll('SIGKILL');
      rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/** 0: none runs. The file stays where it was killed: then its number may be another process's by now. */
function postmasterOf(directory: string): number {
  const data = join(directory, 'data');
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
    return commandOf(pid).includes(data) ? pid : 0;
  } catch {
    return 0;
  }
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
