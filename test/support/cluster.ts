import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { inject } from 'vitest';
import { DAY_MS, dayOf } from '../../src/core/history-day.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { chooseAccount, spawnAs } from '../../src/store/embedded/account.ts';
import { provideBinaries } from '../../src/store/embedded/binaries.ts';
import { SUPERUSER, ensureCluster, serverEnvironment } from '../../src/store/embedded/cluster.ts';
import { homeLink, openHome } from '../../src/store/embedded/home.ts';
import { choosePort } from '../../src/store/embedded/port.ts';
import { makeDays } from '../../src/store/history-days.ts';
import { migrate } from '../../src/store/migrate.ts';
import { type ServerDeps, startServer, stopServer } from '../../src/store/embedded/server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A superuser's URL on the server that global-setup.ts started for this run. */
    postgresUrl: string;
    /** Databases of that server to be copied; null: there are none. */
    templates: Templates | null;
  }
}

export interface Templates {
  /** It has the schema. */
  migrated: string;
  /** It has tables for the coming days as well. */
  withDays: string;
}

export interface TestDatabase {
  readonly url: string;
  /** Also ends connections that are still open. */
  readonly drop: () => Promise<void>;
}

/** A server of its own, without durability and thrown away in the end. */
export interface Cluster {
  /** A superuser's. */
  readonly url: string;
  /** Makes a fresh, empty database and returns its URL. */
  readonly createDatabase: () => Promise<string>;
  /** Every process of the server ends at once, as in a crash. What was committed is kept where the cluster was started to keep it. */
  readonly crash: () => Promise<void>;
  /** On the same port, after a crash. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const SETTINGS = ['fsync=off', 'full_page_writes=off'];

/** A fresh, empty database on the server of this vitest run. */
export function createDatabase(): Promise<TestDatabase> {
  return createDatabaseOn(inject('postgresUrl'));
}

/** One with the schema and nothing in it; a copy is made in a fraction of the time that the migrations take. */
export async function createMigrated(): Promise<TestDatabase> {
  const template = inject('templates')?.migrated;
  if (template !== undefined) return createDatabaseOn(inject('postgresUrl'), template);
  const database = await createDatabase();
  await migrate(database.url);
  return database;
}

/** One as a daemon has left it, so that the next one that starts on it changes nothing of its schema. */
export async function createWithDays(): Promise<TestDatabase> {
  const template = inject('templates')?.withDays;
  if (template !== undefined) return createDatabaseOn(inject('postgresUrl'), template);
  const database = await createMigrated();
  await makeComingDays(database.url);
  return database;
}

/** Of a server that nobody else uses: while a session has it open, it cannot be copied. */
export async function makeTemplates(adminUrl: string): Promise<Templates> {
  const migrated = await createDatabaseOn(adminUrl);
  await migrate(migrated.url);
  const withDays = await createDatabaseOn(adminUrl, nameOf(migrated.url));
  await makeComingDays(withDays.url);
  return { migrated: nameOf(migrated.url), withDays: nameOf(withDays.url) };
}

async function makeComingDays(url: string): Promise<void> {
  const database = openDatabase(url, 1);
  const today = dayOf(Date.now());
  await database.run((db) => makeDays(db, today, today + 4 * DAY_MS));
  await database.close();
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** For scripts outside vitest, and tests of what happens to a server; else all share the run's. */
export async function startCluster({ survivesCrashes = false } = {}): Promise<Cluster> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-test-')));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  const account = await chooseAccount(homeLink(directory));
  const binaries = await provideBinaries(account);
  const home = await openHome(directory, account);
  const deps = { home, binaries, account, clock: systemClock };
  const remove = async () => {
    await rm(home.directory, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await ensureCluster(home, { binaries, account, sync: false });
    const port = await choosePort(home);
    // Written out before it is acknowledged, a commit outlives its server, if not the machine.
    const settings = [...SETTINGS, `synchronous_commit=${survivesCrashes ? 'on' : 'off'}`];
    const start = async () => {
      await startServer(deps, port, settings);
    };
    await start();
    const url = `postgres://${SUPERUSER}:${await readFile(home.passwordFile, 'utf8')}@127.0.0.1:${port}/postgres`;
    return {
      url,
      createDatabase: async () => (await createDatabaseOn(url)).url,
      crash: () => crashServer(deps),
      restart: start,
      stop: () => stopServer(deps).then(remove),
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function crashServer({ home, binaries, account }: ServerDeps): Promise<void> {
  const options = ['stop', '--mode=immediate', '--wait', `--pgdata=${home.data}`];
  const context = { cwd: home.cluster, env: serverEnvironment(), ...spawnAs(account) };
  await promisify(execFile)(binaries.pgCtl, options, context);
}

async function createDatabaseOn(adminUrl: string, template?: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  // By files a copy of one with a schema takes a sixth of what it takes by way of the log. PostgreSQL 14 does not know the word, but
  // templates are on the embedded server only.
  const from = template === undefined ? 'template0' : `${template} strategy file_copy`;
  await execute(adminUrl, `create database ${name} template ${from}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => execute(adminUrl, `drop database if exists ${name} with (force)`) };
}

async function execute(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
