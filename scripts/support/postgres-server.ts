import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../src/runtime/clock.ts';
import {
  type Account,
  type Binaries,
  giveTo,
  provideBinaries,
  provideBinariesOf,
  spawnAs,
} from '../../src/local-postgres/binaries.ts';
import { SUPERUSER, choosePort, serverEnvironment } from '../../src/local-postgres/cluster.ts';
import type { Home } from '../../src/local-postgres/home.ts';
import { startServer, stopServer } from '../../src/local-postgres/postgres-server.ts';
import { temporaryHome } from '../../test/support/postgres/temporary-home.ts';
import { installPostgres } from './postgres-packages.ts';

interface PostgresServer {
  /** A superuser's. */
  readonly url: string;
  /** As the server names it, such as `15.18`. */
  readonly version: string;
  /** Its data are gone afterwards. */
  readonly stop: () => Promise<void>;
}

interface PostgresOptions {
  /** `packaged`: from npm. `system`: Debian's, where it is installed, else from npm. */
  from: 'packaged' | 'system';
  /** Beside those of the embedded server. */
  settings?: readonly string[];
  /** What was committed is on disk. */
  durable: boolean;
}

const NOT_DURABLE = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off'];

/** A server of this major version with a cluster of its own in a temporary directory. */
export async function startPostgres(major: number, options: PostgresOptions): Promise<PostgresServer> {
  const { home, account, remove } = await temporaryHome('firelock-postgres-', options);
  try {
    const binaries = await binariesOf(major, options.from, account);
    const password = await makeCluster(home, { binaries, account, durable: options.durable });
    const deps = { home, binaries, account, clock: systemClock };
    const port = await choosePort(home);
    await startServer(deps, port, [...(options.durable ? [] : NOT_DURABLE), ...(options.settings ?? [])]);
    const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`;
    return { url, version: binaries.version, stop: () => stopServer(deps).then(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function binariesOf(
  major: number,
  from: PostgresOptions['from'],
  account: Account | undefined,
): Promise<Binaries> {
  const bin = `/usr/lib/postgresql/${major}/bin`;
  if (from === 'packaged' || !(await isThere(join(bin, 'initdb')))) {
    const embedded = await provideBinaries(account).catch(() => null);
    return embedded?.major === major ? embedded : provideBinariesOf(await installPostgres(major), account);
  }
  const postgres = join(bin, 'postgres');
  const { stdout } = await promisify(execFile)(postgres, ['--version']);
  const version = /(\d+(\.\d+)*)/.exec(stdout)?.[1] ?? String(major);
  return { initdb: join(bin, 'initdb'), postgres, pgCtl: join(bin, 'pg_ctl'), version, major };
}

/** As the embedded server's, with the nearest rules of letters that this version has. Returns the password. */
async function makeCluster(
  home: Home,
  { binaries, account, durable }: { binaries: Binaries; account: Account | undefined; durable: boolean },
): Promise<string> {
  await mkdir(home.cluster, { mode: 0o700 });
  const password = randomBytes(24).toString('hex');
  await writeFile(home.passwordFile, password, { mode: 0o600 });
  await giveTo(account, home.passwordFile);
  await giveTo(account, home.cluster);
  const options = [
    `--pgdata=${home.data}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${home.passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    ...(binaries.major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : []),
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ];
  await promisify(execFile)(binaries.initdb, options, {
    cwd: home.cluster,
    env: serverEnvironment(),
    ...spawnAs(account),
  });
  return password;
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
