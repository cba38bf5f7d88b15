// @module-tag long
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { type Server, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { listen } from '../../../src/postgres/connection/lasting-connection.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { QueryTimeout, isUnavailable } from '../../../src/postgres/errors.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { rowsOf } from '../../../src/postgres/sql/rows.ts';
import { ownCluster } from '../../support/postgres/cluster.ts';
import type { Cluster } from '../../support/postgres/server.ts';
import { readyDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Two servers with the same role and database; each has a table that says which one it is. */
let first: Cluster;
let second: Cluster;
let open: Database[];
/** So that what one test has learnt of the servers is not known to the next, each connects under a name of its own. */
let test = 0;

beforeEach(() => {
  open = [];
  test += 1;
});

afterEach(async () => {
  await Promise.all(open.map((database) => database.close()));
});

const administer = async (cluster: Cluster, statements: readonly string[], database = 'postgres') => {
  const url = new URL(cluster.url);
  url.pathname = `/${database}`;
  const admin = postgres(url.href, { max: 1, onnotice: () => undefined });
  for (const statement of statements) await admin.unsafe(statement);
  await admin.end();
};

beforeAll(async () => {
  const start = () => ownCluster({ survivesCrashes: true });
  [first, second] = await Promise.all([start(), start()]);
  for (const [cluster, name] of [
    [first, 'first'],
    [second, 'second'],
  ] as const) {
    await administer(cluster, [`CREATE ROLE app LOGIN PASSWORD 'secret'`, 'CREATE DATABASE work OWNER app']);
    await administer(
      cluster,
      [`CREATE TABLE server AS SELECT '${name}' AS name`, 'GRANT ALL ON server TO app'],
      'work',
    );
  }
});
afterAll(() => Promise.all([first, second].map((cluster) => cluster.stop())));

const portOf = (cluster: Cluster) => Number(new URL(cluster.url).port);
const urlOf = (ports: readonly number[], more = '') =>
  `postgres://app:secret@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/work?application_name=test-${test}${more}`;
const bothUrl = (more = '') => urlOf([portOf(first), portOf(second)], more);
const opened = (url: string, size = 1): Database => {
  const database = openDatabase(url, size);
  open.push(database);
  return database;
};
const serverOf = async (database: Database, limitMs?: number): Promise<string | undefined> =>
  (await database.run((db) => rowsOf<{ name: string }>(db)(sql`SELECT name FROM server`), limitMs))[0]?.name;
/** Whatever is lost on the way. */
const untilOn = (name: string, database: Database) =>
  until(async () => ((await serverOf(database).catch(() => '')) === name ? true : null));

describe('where the URL names several servers', () => {
  it('the first is used while it accepts writes', async () => {
    expect(await serverOf(opened(bothUrl()))).toBe('first');
  });

  it('a frozen one is left within the limit of one statement, and other pools do not wait for it again', async () => {
    await first.freeze();
    try {
      expect(await serverOf(opened(bothUrl()))).toBe('second');
      // Less than a server that does not answer is waited for.
      expect(await serverOf(opened(bothUrl()), 2_500)).toBe('second');
    } finally {
      await first.thaw();
    }
  });

  it('one that freezes under its sessions is left, also by idle ones, and by the listener', async () => {
    const url = bothUrl();
    const database = opened(url, 4);
    let heard = 0;
    const listener = listen(url, { a_channel: () => (heard += 1) });
    await until(() => heard || null);
    await Promise.all([1, 2, 3, 4].map(() => database.run((db) => db.execute(sql`SELECT pg_sleep(0.1)`))));
    await first.freeze();
    try {
      await expect(serverOf(database, 300)).rejects.toThrow(QueryTimeout);
      await untilOn('second', database);
      // The other three were idle meanwhile, on the first.
      const answers = await Promise.all([1, 2, 3, 4].map(() => serverOf(database, 2_500)));
      expect(answers).toEqual(Array.from(answers, () => 'second'));
      const before = heard;
      await until(async () => {
        await database.run((db) => db.execute(sql`SELECT pg_notify('a_channel', '')`));
        return heard > before + 1 || null;
      });
    } finally {
      await first.thaw();
      await listener.stop();
    }
  });

  it('one that went away and came back is used again when the other goes', async () => {
    const database = opened(bothUrl());
    expect(await serverOf(database)).toBe('first');
    await first.crash();
    await untilOn('second', database);
    await first.restart();
    expect(await serverOf(database)).toBe('second');
    await second.crash();
    await untilOn('first', database);
    await second.restart();
  });

  it('if none answers, the error names each, and its fault', async () => {
    const error = serverOf(opened(urlOf([1, portOf(second)]).replace('secret', 'swordfish')));
    await expect(error).rejects.toThrow(
      /127\.0\.0\.1:1: .*ECONNREFUSED.*; 127\.0\.0\.1:\d+: password authentication failed/,
    );
    expect(await error.catch(isUnavailable)).toBe(true);
    expect(await error.catch(String)).not.toContain('swordfish');
  });

  it('migrations, the API and fires go to the one that answers', async () => {
    await first.freeze();
    try {
      expect(await migrate(bothUrl())).toBeGreaterThan(0);
      const daemon = await readyDaemon(bothUrl());
      await daemon.logged(/^PostgreSQL at 127\.0\.0\.1:\d+,127\.0\.0\.1:\d+\/work$/);
      expect(await daemon.call('GET', '/api/v1/schedules')).toMatchObject({ status: 200 });
      daemon.signal('SIGTERM');
      expect(await daemon.exited).toBe(0);
    } finally {
      await first.thaw();
    }
  });
});

describe.each([
  [
    'is set to be read only',
    () => administer(first, ['ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()']),
    () => administer(first, ['ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()']),
  ],
  ['is a standby', () => first.becomeStandby(), () => first.promote()],
])('where the first server %s', (_, makeReadOnly, makeWritable) => {
  // Settings are read again a moment later.
  beforeAll(async () => {
    await makeReadOnly();
    await until(async () => ((await isReadOnly()) ? true : null));
  });
  afterAll(async () => {
    await makeWritable();
    await until(async () => ((await isReadOnly()) ? null : true));
  });

  async function isReadOnly(): Promise<boolean> {
    const database = openDatabase(urlOf([portOf(first)]), 1);
    const [row] = await database.run((db) =>
      rowsOf<{ value: string }>(db)(sql`SELECT current_setting('transaction_read_only') AS value`),
    );
    await database.close();
    return row?.value === 'on';
  }

  it.each(['', '&target_session_attrs=read-write', '&target_session_attrs=primary'])(
    'the one that writes is found (%s)',
    async (attributes) => {
      expect(await serverOf(opened(bothUrl(attributes)))).toBe('second');
    },
  );

  it('and the other is away, it can be read, unless the URL demands writes; and that one is used when it is back', async () => {
    await second.crash();
    const strict = opened(bothUrl('&target_session_attrs=primary'));
    const lax = opened(bothUrl());
    try {
      await expect(serverOf(strict)).rejects.toThrow(/127\.0\.0\.1:\d+: it may not be written/);
      expect(await serverOf(strict).catch(isUnavailable)).toBe(true);
      expect(await serverOf(lax)).toBe('first');
    } finally {
      await second.restart();
    }
    const write = (database: Database) => database.run((db) => db.execute(sql`UPDATE server SET name = name`));
    await write(strict);
    await write(lax);
    expect(await serverOf(lax)).toBe('second');
  });

  it('a statement that exceeds its time is cancelled on the server where it runs', async () => {
    const database = opened(bothUrl());
    const watcher = opened(urlOf([portOf(second)]));
    await expect(database.run((db) => db.execute(sql`SELECT pg_sleep(600)`), 500)).rejects.toThrow(QueryTimeout);
    const sleeping = sql`SELECT FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'`;
    await until(async () => ((await watcher.run((db) => rowsOf(db)(sleeping))).length === 0 ? true : null));
  });
});

describe('a server is reached', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'firelock-socket-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** Forwards what comes to this address or path. */
  async function forwarder(at: { host: string; port: number } | { path: string }): Promise<Server> {
    const server = createServer((client) => {
      const way = connect(portOf(second), '127.0.0.1');
      client.pipe(way).pipe(client);
      for (const socket of [client, way]) {
        socket.on('error', () => undefined);
        socket.on('close', () => [client, way].forEach((end) => end.destroy()));
      }
    });
    server.listen(at);
    await once(server, 'listening');
    return server;
  }

  async function expectReached(authority: string): Promise<void> {
    const { username, password, pathname } = new URL(second.url);
    const database = opened(`postgres://${username}:${password}@${authority}${pathname}`);
    const slow = database.run((db) => db.execute(sql`SELECT pg_sleep(600)`), 500);
    await expect(slow).rejects.toThrow(QueryTimeout);
    const sleeping = sql`SELECT FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep'`;
    await until(async () => ((await database.run((db) => rowsOf(db)(sleeping))).length === 0 ? true : null));
  }

  it('by TLS', async () => {
    const fixtures = join(import.meta.dirname, '..', '..', 'targets', 'fixtures');
    for (const [file, name] of [
      ['self-signed.cert.pem', 'server.crt'],
      ['self-signed.key.pem', 'server.key'],
    ] as const) {
      const lines = (await readFile(join(fixtures, file), 'utf8')).trim();
      const rows = `SELECT unnest(string_to_array('${lines}', E'\\n'))`;
      await administer(second, [`COPY (${rows}) TO PROGRAM 'umask 077; cat > ${name}'`]);
    }
    await administer(second, ['ALTER SYSTEM SET ssl = on', 'SELECT pg_reload_conf()']);
    const [plain] = await until(() => encryption('').then((rows) => (rows[0]?.ssl === false ? rows : null)));
    expect(plain).toEqual({ ssl: false });
    await until(() =>
      encryption('?sslmode=require').then(
        (rows) => (rows[0]?.ssl === true ? rows : null),
        () => null,
      ),
    );
    await expect(encryption('?sslmode=verify-full')).rejects.toThrow();
  });

  async function encryption(search: string): Promise<{ ssl: boolean }[]> {
    const database = openDatabase(second.url + search, 1);
    try {
      const own = sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
      return await database.run((db) => rowsOf<{ ssl: boolean }>(db)(own));
    } finally {
      await database.close();
    }
  }

  it('by an IPv6 address', async () => {
    const server = await forwarder({ host: '::1', port: 0 });
    const address = server.address();
    await expectReached(`[::1]:${typeof address === 'object' ? address?.port : ''}`);
    server.close();
  });

  it('by a unix socket, in a list as well', async () => {
    const server = await forwarder({ path: join(folder, '.s.PGSQL.7777') });
    await expectReached(`127.0.0.1:1,${encodeURIComponent(folder)}:7777`);
    server.close();
  });
});
