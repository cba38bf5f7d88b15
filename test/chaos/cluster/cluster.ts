import postgres from 'postgres';
import { type Cluster, startCluster } from '../../support/postgres/server.ts';

/** A PostgreSQL of the campaign's own, to be crashed at will: what was acknowledged must be there afterwards. */
export interface FaultCluster extends Pick<Cluster, 'crash' | 'restart' | 'stop'> {
  /** A superuser's, straight to the campaign's database. */
  readonly url: string;
  /** By a connection of its own, that may write whatever the defaults say; undefined where it could not. */
  admin(statement: string): Promise<Record<string, unknown>[] | undefined>;
}

export async function startFaultCluster(): Promise<FaultCluster> {
  const cluster = await startCluster({ survivesCrashes: true, settings: ['shared_buffers=64MB'] });
  const url = await cluster.createDatabase();
  return { ...cluster, url, admin: (statement) => execute(url, statement).catch(() => undefined) };
}

export async function execute(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 5,
    onnotice: () => undefined,
    connection: { application_name: 'chaos', default_transaction_read_only: false },
  });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end({ timeout: 5 });
  }
}
