import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { systemClock } from '../../../src/runtime/clock.ts';
import { startPostgres } from '../../../scripts/support/postgres-server.ts';
import { startEmbeddedPostgres } from '../../../src/local-postgres/embedded-postgres.ts';
import { cpuSecondsOfTree, parentOf } from '../measures/cpu.ts';

export interface Server {
  /** Of a role that may create databases. */
  url: string;
  version: string;
  /** Settings that say what a commit costs. */
  durability: string;
  createDatabase(): Promise<BenchDatabase>;
  /** The first of its processes; null where it runs elsewhere. */
  postmaster: number | null;
  /** Of all of its processes; null where it runs elsewhere. */
  cpuSeconds(): number | null;
  stop(): Promise<void>;
}

export interface BenchDatabase {
  url: string;
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** The same known state before each measurement: statistics up to date, nothing left to be written back. */
  calm(): Promise<void>;
  /** Nothing left to be written back, and statistics as they are. */
  checkpoint(): Promise<void>;
  drop(): Promise<void>;
}

/**
 * The server of a URL (DATABASE_URL unless given), whose role must be allowed to create databases; or one of its own, of the
 * major version that is given: Debian's where it is installed, else npm's. Without anything the embedded one.
 */
export async function openServer(
  given = process.env['DATABASE_URL'] ?? '',
  settings: readonly string[] = [],
): Promise<Server> {
  if (/^\d+$/.test(given)) {
    const server = await startPostgres(Number(given), { from: 'system', durable: true, settings });
    return openAt(server.url, () => server.stop());
  }
  if (given !== '') return openAt(given, () => Promise.resolve());
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'firelock-bench-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(dataDir, 0o755);
  const embedded = await startEmbeddedPostgres({ dataDir, clock: systemClock, onEvent: () => undefined });
  return openAt(embedded.url, async () => {
    await embedded.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
}

async function openAt(url: string, stopServer: () => Promise<void>): Promise<Server> {
  const admin = connect(url);
  const [row] = await admin`SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit, current_setting('full_page_writes') AS full_page_writes,
    current_setting('shared_buffers') AS shared_buffers, pg_backend_pid() AS pid`;
  if (!row) throw new Error('PostgreSQL says nothing of itself');
  const postmaster = await postmasterOf(Number(row['pid']));
  return {
    url,
    version: String(row['version']),
    durability: ['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers']
      .map((name) => `${name} ${String(row[name])}`)
      .join(', '),
    createDatabase: () => createDatabase(admin, url),
    postmaster,
    cpuSeconds: () => (postmaster === null ? null : cpuSecondsOfTree(postmaster)),
    stop: async () => {
      await admin.end({ timeout: 5 });
      await stopServer();
    },
  };
}

/** The parent of our backend, if that is a process of this machine. */
async function postmasterOf(backend: number): Promise<number | null> {
  try {
    if (!(await readFile(`/proc/${backend}/cmdline`, 'utf8')).startsWith('postgres')) return null;
    return parentOf(backend);
  } catch {
    return null;
  }
}

async function createDatabase(admin: postgres.Sql, serverUrl: string): Promise<BenchDatabase> {
  const name = `firelock_bench_${randomBytes(6).toString('hex')}`;
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE template0`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const own = connect(url.href);
  return {
    url: url.href,
    query: async (statement) => [...(await own.unsafe(statement))],
    checkpoint: async () => {
      await own.unsafe('CHECKPOINT');
    },
    calm: async () => {
      await own.unsafe('VACUUM ANALYZE');
      await own.unsafe('CHECKPOINT');
    },
    drop: async () => {
      await own.end({ timeout: 5 });
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

function connect(url: string): postgres.Sql {
  return postgres(url, { max: 1, onnotice: () => undefined });
}
