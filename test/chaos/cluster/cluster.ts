import { execFile, execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { systemClock } from '../../../src/runtime/clock.ts';
import { chooseAccount, spawnAs } from '../../../src/local-postgres/account.ts';
import { provideBinaries } from '../../../src/local-postgres/binaries.ts';
import {
  choosePort,
  ensureCluster,
  serverEnvironment,
  SUPERUSER,
} from '../../../src/local-postgres/cluster.ts';
import { homeLink, openHome } from '../../../src/local-postgres/home.ts';
import { startServer, stopServer } from '../../../src/local-postgres/postgres-server.ts';

/** A PostgreSQL of the campaign's own, to be crashed at will. */
export interface FaultCluster {
  /** A superuser's, straight to the server. */
  readonly url: string;
  /** Every process of the server ends at once, as in a crash: what was acknowledged must be there afterwards. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** By a connection of its own, that may write whatever the defaults say; undefined where it could not. */
  admin(statement: string): Promise<Record<string, unknown>[] | undefined>;
  remove(): Promise<void>;
}

/**
 * A commit must be written out before it is acknowledged (synchronous_commit), or a crash of the server would lose what it
 * promised. fsync only guards against the machine's own crash, which is not among the faults here.
 */
const SETTINGS = ['fsync=off', 'synchronous_commit=on', 'full_page_writes=off', 'shared_buffers=64MB'];
const DATABASE = 'chaos';

export async function startFaultCluster(): Promise<FaultCluster> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-chaos-pg-')));
  await chmod(directory, 0o755);
  const account = await chooseAccount(homeLink(directory));
  const binaries = await provideBinaries(account);
  const home = await openHome(directory, account);
  const deps = { home, binaries, account, clock: systemClock };
  await ensureCluster(home, { binaries, account, sync: false });
  const port = await choosePort(home);
  const urlOf = async (database: string) =>
    `postgres://${SUPERUSER}:${await readFile(home.passwordFile, 'utf8')}@127.0.0.1:${port}/${database}`;
  const start = async () => {
    await startServer(deps, port, SETTINGS);
  };
  const crash = async () => {
    await promisify(execFile)(
      binaries.pgCtl,
      ['stop', '--mode=immediate', '--wait', `--pgdata=${home.data}`],
      {
        cwd: home.cluster,
        env: serverEnvironment(),
        ...spawnAs(account),
      },
    );
  };
  const stopAtExit = () =>
    execFileSync(binaries.pgCtl, ['stop', '--mode=immediate', `--pgdata=${home.data}`], {
      cwd: home.cluster,
      stdio: 'ignore',
      ...spawnAs(account),
    });
  process.once('exit', stopAtExit);
  await start();
  await execute(await urlOf('postgres'), `create database ${DATABASE} template template0`);
  const url = await urlOf(DATABASE);
  return {
    url,
    crash,
    start,
    admin: (statement) => execute(url, statement).catch(() => undefined),
    remove: async () => {
      process.removeListener('exit', stopAtExit);
      await stopServer(deps).catch(crash);
      await rm(home.directory, { recursive: true, force: true });
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function execute(url: string, statement: string): Promise<Record<string, unknown>[]> {
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
