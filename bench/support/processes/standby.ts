import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { systemClock } from '../../../src/runtime/clock.ts';
import { type Account, giveTo, provideBinaries, spawnAs } from '../../../src/local-postgres/binaries.ts';
import type { Home } from '../../../src/local-postgres/home.ts';
import { choosePort } from '../../../src/local-postgres/cluster.ts';
import { startServer, stopServer } from '../../../src/local-postgres/postgres-server.ts';
import { temporaryHome } from '../../../test/support/postgres/temporary-home.ts';
import { cpuSecondsOfTree } from '../measures/cpu.ts';

export interface Standby {
  cpuSeconds(): number | null;
  /** The primary waits for no standby afterwards. */
  stop(): Promise<void>;
}

const NAME = 'bench_standby';
const SYNC_LIMIT_MS = 60_000;

/**
 * A streaming standby on this machine, for which every commit of the primary waits from now on. The primary must be an embedded
 * one, as its files are copied; the URL is a superuser's.
 */
export async function startStandby(primaryUrl: string): Promise<Standby> {
  const { home, account, remove } = await temporaryHome('firelock-bench-standby-', { durable: true });
  const deps = { home, account, binaries: await provideBinaries(account), clock: systemClock };
  const admin = postgres(primaryUrl, { max: 1, onnotice: () => undefined });
  const stop = async () => {
    await waitFor(admin, null);
    await admin.end({ timeout: 5 });
    await stopServer(deps);
    await remove();
  };
  try {
    await copyPrimary(admin, home, account);
    const { hostname, port, username, password } = new URL(primaryUrl);
    const primary = `host=${hostname} port=${port} user=${username} password=${password} application_name=${NAME}`;
    const server = await startServer(deps, await choosePort(home), [`primary_conninfo=${primary}`]);
    await waitFor(admin, NAME);
    return { cpuSeconds: () => cpuSecondsOfTree(server.identity.pid), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** PostgreSQL's way of a backup while it runs; pg_basebackup is not among the embedded programs. */
async function copyPrimary(admin: postgres.Sql, home: Home, account: Account | undefined): Promise<void> {
  await mkdir(home.cluster, { mode: 0o700 });
  await giveTo(account, home.cluster);
  const [row] = await admin`SELECT current_setting('data_directory') AS data`;
  await admin`SELECT pg_backup_start(${NAME}, true)`;
  await promisify(execFile)('cp', ['-a', String(row?.['data']), home.data], {
    cwd: '/',
    ...spawnAs(account),
  });
  const [stopped] = await admin`SELECT labelfile FROM pg_backup_stop(false)`;
  for (const file of ['postmaster.pid', 'postmaster.opts']) await rm(join(home.data, file), { force: true });
  const files = { backup_label: String(stopped?.['labelfile']), 'standby.signal': '' };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(home.data, name), text, { mode: 0o600 });
    await giveTo(account, join(home.data, name));
  }
}

/** For which standby commits wait; null: for none. */
async function waitFor(admin: postgres.Sql, name: string | null): Promise<void> {
  await admin.unsafe(
    name === null
      ? 'ALTER SYSTEM RESET synchronous_standby_names'
      : `ALTER SYSTEM SET synchronous_standby_names = '${name}'`,
  );
  await admin`SELECT pg_reload_conf()`;
  if (name === null) return;
  for (let waited = 0; ; waited += 50) {
    const [row] = await admin`SELECT sync_state FROM pg_stat_replication WHERE application_name = ${name}`;
    if (row?.['sync_state'] === 'sync') return;
    if (waited >= SYNC_LIMIT_MS) throw new Error('the standby does not follow');
    await sleep(50);
  }
}
