import { readFileSync, rmSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandOf, pidsOfTree } from '../../../bench/support/measures/cpu.ts';
import { type Account, giveTo, spawnAs } from '../../../src/local-postgres/binaries.ts';
import { type Program, startCommand } from '../../support/programs.ts';

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

export const PORTS = { postgres: 5432, patroni: 8008, etcd: 2379, etcdPeer: 2380, haproxy: 5000 };

export type Replication = 'sync' | 'async';

interface PatroniOptions {
  name: string;
  address: string;
  directory: string;
  etcd: string;
  /** The folder of PostgreSQL's own programs. */
  binaries: string;
  password: string;
  replication: Replication;
}

/**
 * What Patroni reads; JSON is YAML. The times are shorter than the usual ones (30, 10, 10 s): a standby takes over ten seconds
 * after the last sign of life.
 */
function patroniConfiguration(options: PatroniOptions): object {
  const { name, address, directory, etcd, binaries, password } = options;
  const rest = `${address}:${PORTS.patroni}`;
  const server = `${address}:${PORTS.postgres}`;
  return {
    scope: 'firelock',
    name,
    restapi: { listen: rest, connect_address: rest },
    // The old interface, for which etcd needs --enable-v2. With `etcd3` Patroni 3.0.2 lets a primary that was frozen take
    // the lock back when it thaws.
    etcd: { host: etcd },
    bootstrap: {
      dcs: sharedConfiguration(options.replication),
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      listen: server,
      connect_address: server,
      data_dir: join(directory, 'data'),
      bin_dir: binaries,
      pgpass: join(directory, 'pgpass'),
      pg_hba: ['host all all 127.0.0.0/8 scram-sha-256', 'host replication all 127.0.0.0/8 scram-sha-256'],
      parameters: { unix_socket_directories: directory, password_encryption: 'scram-sha-256' },
      basebackup: [{ checkpoint: 'fast' }],
      authentication: {
        superuser: { username: 'postgres', password },
        replication: { username: 'replicator', password },
        rewind: { username: 'rewinder', password },
      },
    },
  };
}

/** What etcd keeps for all nodes. */
function sharedConfiguration(replication: Replication): object {
  return {
    ttl: 10,
    loop_wait: 2,
    retry_timeout: 3,
    synchronous_mode: replication === 'sync',
    // By default a standby that lacks more than a megabyte never takes over: this drill would wait for ever.
    maximum_lag_on_failover: 1_073_741_824,
    postgresql: {
      use_pg_rewind: true,
      parameters: { shared_buffers: '64MB', max_connections: 100, wal_keep_size: '512MB' },
    },
  };
}
