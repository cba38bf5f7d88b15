import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it, test, inject } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { createDatabase } from '../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { type Variables, spawnDaemon } from '../support/daemon.ts';
import { startDaemonHere } from '../support/daemon-here.ts';
import { THROUGH_POOLER } from '../support/postgres/pooler.ts';

const root = join(import.meta.dirname, '..', '..');

const DATABASE_URL = 'postgres://firelock:swordfish@127.0.0.1:9/firelock';

test('with a bad configuration the process ends with code 1 before it touches the database, naming every bad variable with a hint', async () => {
  let connections = 0;
  const database = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const port = await listenOnLoopback(database);
  const daemon = spawnDaemon({
    DATABASE_URL: DATABASE_URL.replace(':9/', `:${port}/`),
    PORT: 'eighty',
    LOG_LEVEL: 'loud',
    HOST: 'not a host',
    FIRELOCK_TICK_INTERVAL_MS: '5',
    FIRELOCK_SHUTDOWN_SECONDS: '-1',
    FIRELOCK_RETENTION_DAYS: '0',
    FIRELOCK_ALLOW_ANONYMOUS: 'perhaps',
    FIRELOCK_TICK_INTERVALL_MS: '1000',
  });
  expect(await daemon.exited).toBe(1);
  const output = daemon.lines.join('\n');
  const faults = output.split('\n').slice(1);
  expect(faults).toHaveLength(8);
  for (const line of [
    /PORT is "eighty"; expected: .* from 0 to 65535/,
    /LOG_LEVEL is "loud"; expected: .*debug/,
    /HOST is "not a host"; expected: an address/,
    /FIRELOCK_TICK_INTERVAL_MS is "5"; expected: .*milliseconds: .* from 10 to 60000/,
    /FIRELOCK_SHUTDOWN_SECONDS is "-1"; expected: .*seconds: .* from 0 to 3600/,
    /FIRELOCK_RETENTION_DAYS is "0"; expected: .*days: .* from 1 to 36500/,
    /FIRELOCK_ALLOW_ANONYMOUS is "perhaps"; expected: 1/,
    /FIRELOCK_TICK_INTERVALL_MS is not a variable of firelock; known: .*FIRELOCK_TICK_INTERVAL_MS/,
  ]) {
    expect(faults).toContainEqual(expect.stringMatching(line));
  }
  expect(output).not.toContain('swordfish');
  expect(connections).toBe(0);
  database.close();
  await once(database, 'close');
});

describe('a bad configuration is refused', () => {
  /** As the process says it. */
  function refused(variables: Variables): string {
    const read = readConfig({ DATABASE_URL, ...variables });
    if (!('faults' in read)) throw new Error('it is taken');
    const output = read.faults.join('\n');
    expect(output).not.toContain('swordfish');
    return output;
  }

  it('without the contents of a database’s URL', () => {
    const output = refused({
      DATABASE_URL: 'mysql://firelock:swordfish@127.0.0.1/firelock',
      FIRELOCK_MIGRATION_DATABASE_URL: 'host=127.0.0.1 password=swordfish',
    });
    expect(output).toMatch(/DATABASE_URL is not a URL of PostgreSQL; expected: postgres:/);
    expect(output).toMatch(/FIRELOCK_MIGRATION_DATABASE_URL is not a URL of PostgreSQL; expected: postgres:/);
  });

  it('if a URL asks for servers that cannot be written', () => {
    const output = refused({
      DATABASE_URL: 'postgres://firelock:swordfish@h1:5432,h2:5433/firelock?target_session_attrs=standby',
    });
    expect(output).toMatch(
      /^DATABASE_URL has what firelock cannot follow: "target_session_attrs" must be any, read-write or primary/m,
    );
  });

  it('naming each parameter of a URL that it does not follow, and each missing file', () => {
    const output = refused({
      DATABASE_URL: `${DATABASE_URL}?sslmode=allow&channel_binding=require&sslcrl=/c`,
      FIRELOCK_MIGRATION_DATABASE_URL: `${DATABASE_URL}?sslmode=verify-full&sslrootcert=/nowhere.pem`,
    });
    expect(output).toMatch(
      /^DATABASE_URL has what firelock cannot follow: "sslmode" must be one of disable, .*; "sslcrl" is not supported/m,
    );
    expect(output).toMatch(
      /FIRELOCK_MIGRATION_DATABASE_URL has what firelock cannot follow: "sslrootcert" names \/nowhere\.pem, which cannot be read \(ENOENT\)/,
    );
  });

  it('if it would answer any caller on an address that is not loopback', () => {
    const output = refused({ HOST: '0.0.0.0' });
    expect(output).toMatch(
      /HOST is 0\.0\.0\.0.*expected: a loopback address, or FIRELOCK_API_TOKENS.*FIRELOCK_ALLOW_ANONYMOUS=1/,
    );
  });

  it('if values are right by themselves and wrong together', () => {
    const output = refused({
      FIRELOCK_INSTANCE_TTL_SECONDS: '5',
      FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '4',
    });
    expect(output).toMatch(
      /FIRELOCK_INSTANCE_TTL_SECONDS is 5; expected: at least 2 × FIRELOCK_HEARTBEAT_INTERVAL_SECONDS/,
    );
  });

  it('naming values that are wrong by themselves and together at once', () => {
    const output = refused({ HOST: '0.0.0.0', PORT: 'eighty', FIRELOCK_INSTANCE_TTL_SECONDS: '4' });
    expect(output).toMatch(/PORT is "eighty"/);
    expect(output).toMatch(/HOST is 0\.0\.0\.0/);
    expect(output).toMatch(/FIRELOCK_INSTANCE_TTL_SECONDS is 4; expected: at least 2/);
  });
});

it('an address that is not loopback needs a setting, and one that this machine lacks is an error that names it', async () => {
  const daemon = spawnDaemon({
    DATABASE_URL: 'postgres://127.0.0.1:9/none',
    HOST: '192.0.2.1',
    FIRELOCK_ALLOW_ANONYMOUS: '1',
  });
  expect(await daemon.exited).toBe(1);
  expect(daemon.log().at(-1)).toMatchObject({
    level: 60,
    msg: expect.stringContaining('192.0.2.1') as string,
  });
  expect(daemon.log()).toContainEqual(
    expect.objectContaining({
      level: 40,
      host: '192.0.2.1',
      msg: expect.stringMatching(/every caller that reaches this address may do everything/) as string,
    }),
  );
});

it('a port in use is named, with advice', async () => {
  const { url, drop } = await createMigratedDatabase();
  const first = await startDaemonHere(url);
  const second = spawnDaemon({ DATABASE_URL: url, PORT: String(first.port) });
  expect(await second.exited).toBe(1);
  expect(second.log().at(-1)?.msg).toBe(`port ${first.port} of 127.0.0.1 is taken; set PORT to another one`);
  await first.stop();
  await drop();
});

it('passwords stay out of the log, also when the database refuses them', async () => {
  const { url, drop } = await createDatabase();
  const wrong = new URL(url);
  wrong.password = 'swordfish';
  const daemon = await startDaemonHere(wrong.href, { LOG_LEVEL: 'trace' });
  expect(await daemon.logged(/^the migrations loop failed/)).toMatchObject({
    level: 40,
    // PgBouncer answers for a wrong password itself.
    reason: expect.stringContaining(`${THROUGH_POOLER ? 'SASL' : 'password'} authentication failed`) as string,
  });
  await daemon.stop();
  expect(daemon.lines.join('\n')).not.toContain('swordfish');
  await drop();
});

describe('a Node that is too old', () => {
  const tooOld = findOldNode();

  it(`is reported in one line (here: ${tooOld?.version ?? 'none'})`, async ({ skip }) => {
    if (tooOld === undefined) return skip('needs an older Node beside the pinned one');
    const directory = await mkdtemp(join(tmpdir(), 'firelock-old-node-'));
    try {
      await mkdir(join(directory, 'dist'));
      await copyFile(join(root, 'package.json'), join(directory, 'package.json'));
      await writeFile(join(directory, 'dist', 'main.js'), await built('main.ts'));
      const { status, stdout, stderr } = spawnSync(tooOld.path, [join(directory, 'dist', 'main.js')], {
        encoding: 'utf8',
      });
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toMatch(
        /^firelock needs Node >=22\.19; this is \d+\.\d+\.\d+ \(install .* npx --package=node@24 .*\n$/,
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('shows the commands and the version, and what to do to start', ({ skip }) => {
    if (tooOld === undefined) return skip('needs an older Node beside the pinned one');
    const said = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(tooOld.path, [inject('daemonMain'), ...args], {
        encoding: 'utf8',
      });
      return [status, stdout.split('\n', 1)[0], stderr.split(';', 1)[0]];
    };
    expect(said('--help')).toEqual([0, 'Usage: firelock [options] [command]', '']);
    expect(said('schedule', 'why', '--help')).toEqual([0, 'Usage: firelock schedule why [options] <id>', '']);
    expect(said('--version')).toEqual([0, 'firelock 0.1.0', '']);
    expect(said('start')).toEqual([1, '', 'firelock needs Node >=22.19']);
  });
});

/** What the build makes of one file: main.ts imports the others only once the version is known to do. */
async function built(name: string): Promise<string> {
  const config = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.build.json'), undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: () => undefined,
  });
  const source = await readFile(join(root, 'src', name), 'utf8');
  // By itself a file does not tell that its package is one of ES modules.
  const compilerOptions = { ...config?.options, module: ts.ModuleKind.ESNext };
  return ts.transpileModule(source, { compilerOptions, fileName: name }).outputText;
}

function findOldNode(): { path: string; version: string } | undefined {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(directory, 'node');
    const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
    if (status === 0 && Number(/^v(\d+)/.exec(stdout)?.[1]) < 22) return { path, version: stdout.trim() };
  }
  return undefined;
}
