import { chown, copyFile, mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isUnavailable } from '../../../src/postgres/errors.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { startDaemon } from '../../support/daemon.ts';
import { ownCluster } from '../../support/postgres/cluster.ts';
import type { Cluster } from '../../support/postgres/server.ts';
import { until } from '../../support/until.ts';

const fixture = (name: string) => join(import.meta.dirname, 'fixtures', name);
const [CA, OTHER_CA] = [fixture('ca.cert.pem'), fixture('other-ca.cert.pem')];

let cluster: Cluster;
let directory: string;
let url: string;

/** A server that speaks TLS, with a certificate for the name localhost. It listens on 127.0.0.1. */
beforeAll(async () => {
  cluster = await ownCluster();
  const admin = postgres(cluster.url, { max: 1, onnotice: () => undefined });
  directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-tls-')));
  chmodSync(directory, 0o755);
  const [row] = await admin`SELECT current_setting('data_directory') AS data`;
  const { uid, gid } = await stat(String(row?.['data']));
  for (const name of ['localhost.cert.pem', 'localhost.key.pem']) {
    const file = join(directory, name);
    await copyFile(fixture(name), file);
    chmodSync(file, 0o600);
    await chown(file, uid, gid);
    await admin.unsafe(`ALTER SYSTEM SET ssl_${name.includes('key') ? 'key' : 'cert'}_file = '${file}'`);
  }
  await admin.unsafe('ALTER SYSTEM SET ssl = on');
  await admin`SELECT pg_reload_conf()`;
  await admin.end();
  url = await cluster.createDatabase();
});
afterAll(async () => {
  await cluster.stop();
  await rm(directory, { recursive: true });
});

function urlWith(host: string, parameters: Record<string, string>): string {
  const changed = new URL(url);
  changed.hostname = host;
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value);
  return changed.href;
}

/** Whether the connection is encrypted, or why there is none. */
async function connected(address: string): Promise<boolean | string> {
  const database = openDatabase(address, 1);
  try {
    const [row] = await database.run((db) => db.execute(sql`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`));
    return row?.['ssl'] as boolean;
  } catch (error) {
    // The API answers 503, and the loops go on trying.
    expect(isUnavailable(error)).toBe(true);
    return (error as Error).message;
  } finally {
    await database.close();
  }
}

describe('a server with a certificate of its own authority, for the name localhost', () => {
  it.each([
    ['127.0.0.1', {}, false],
    ['127.0.0.1', { sslmode: 'disable' }, false],
    ['127.0.0.1', { sslmode: 'prefer' }, true],
    ['127.0.0.1', { sslmode: 'require' }, true],
    ['127.0.0.1', { sslmode: 'require', sslrootcert: CA }, true],
    ['127.0.0.1', { sslmode: 'verify-ca', sslrootcert: CA }, true],
    ['localhost', { sslmode: 'verify-full', sslrootcert: CA }, true],
    ['127.0.0.1', { sslmode: 'require', sslrootcert: OTHER_CA }, /is not signed by one that is trusted/],
    ['127.0.0.1', { sslmode: 'verify-ca', sslrootcert: OTHER_CA }, /is not signed by one that is trusted/],
    [
      'localhost',
      { sslmode: 'verify-full', sslrootcert: OTHER_CA },
      /^localhost:\d+, asked by sslmode=verify-full: its/,
    ],
    ['localhost', { sslmode: 'verify-full' }, /is not signed by one that is trusted/],
    ['127.0.0.1', { sslmode: 'verify-full', sslrootcert: CA }, /its certificate is for another host name$/],
    ['localhost', { sslmode: 'verify-full', sslrootcert: '/nowhere.pem' }, /the file of sslrootcert, .* \(ENOENT\)/],
  ] as const)('%s with %j: %s', async (host, parameters, expected) => {
    const outcome = await connected(urlWith(host, parameters));
    if (typeof expected === 'boolean') expect(outcome).toBe(expected);
    else expect(outcome).toMatch(expected);
  });

  it('also takes a cancel request under TLS, for a statement that takes too long', async () => {
    const database = openDatabase(urlWith('localhost', { sslmode: 'verify-full', sslrootcert: CA }), 1);
    await expect(database.run((db) => db.execute(sql`SELECT pg_sleep(60)`), 200)).rejects.toThrow(/200 ms/);
    const sleeping = sql`SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'`;
    await until(async () => (await database.run((db) => db.execute(sleeping))).length === 0 || null);
    await database.close();
  });

  it('a daemon that does not trust it says so at its start, and is not ready', async () => {
    const daemon = await startDaemon({
      DATABASE_URL: urlWith('127.0.0.1', { sslmode: 'verify-full', sslrootcert: CA }),
    });
    const { reason } = await daemon.logged(/^the migrations loop failed/);
    expect(reason).toMatch(/asked by sslmode=verify-full: its certificate is for another host name/);
    expect((await daemon.call('GET', '/readyz')).status).toBe(503);
    expect((await daemon.call('GET', '/api/v1/schedules')).status).toBe(503);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
    expect(JSON.stringify(daemon.log())).not.toContain(new URL(url).password);
  });
});

describe('a server that does not behave as PostgreSQL does', () => {
  /** Answers the question for TLS with these bytes. */
  async function asked(answer: string, sslmode: string): Promise<boolean | string> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(answer));
    });
    const port = await listenOnLoopback(server);
    const outcome = await connected(`postgres://u:p@127.0.0.1:${port}/db?sslmode=${sslmode}`);
    server.close();
    return outcome;
  }

  it('gets no data, above all no password', async () => {
    expect(await asked('N', 'require')).toMatch(/does not offer TLS, which sslmode=require asks for/);
    // What comes with the answer was put there by someone in between.
    expect(await asked('S\x45\0\0\0\x08', 'require')).toMatch(/does not answer a question for TLS as PostgreSQL does/);
    expect(await asked('HTTP/1.1 400', 'prefer')).toMatch(/does not answer a question for TLS as PostgreSQL does/);
    expect(await asked('', 'require')).toMatch(/closed the connection when it was asked for TLS/);
    expect(await asked('S', 'require')).toMatch(/asked by sslmode=require/);
  });
});
