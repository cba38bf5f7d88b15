import { join } from 'node:path';

export const PORTS = { postgres: 5432, patroni: 8008, etcd: 2379, etcdPeer: 2380, haproxy: 5000 };

export type Replication = 'sync' | 'async';

export interface PatroniOptions {
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
export function patroniConfiguration(options: PatroniOptions): object {
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
