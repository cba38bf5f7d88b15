import postgres from 'postgres';
import { sql } from 'drizzle-orm';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { toProblem } from '../../src/api/http/problem.ts';
import type { FirelockEvent } from '../../src/core/events.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { openDatabase, tellingTroubles } from '../../src/postgres/database.ts';
import { databaseTrouble } from '../../src/core/database-trouble.ts';
import { THROUGH_POOLER } from '../support/postgres/pooler.ts';
import { roleOfTest } from '../support/postgres/role.ts';
import { executeAt } from '../support/postgres/server.ts';

const failureOf = (url: string) =>
  migrate(url).then(
    () => null,
    (error: unknown) => error as Error,
  );

/** By this name, until the end of the test. */
async function databaseNamed(name: string, options = ''): Promise<URL> {
  const admin = inject('postgresUrl');
  await executeAt(admin, `CREATE DATABASE "${name}" TEMPLATE template0 ${options}`);
  onTestFinished(() => executeAt(admin, `DROP DATABASE "${name}" WITH (FORCE)`));
  const url = new URL(admin);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url;
}

// A pooler has a list of databases, and refuses start-up parameters.
describe.skipIf(THROUGH_POOLER)('a database', () => {
  it('whose name has to be encoded in a URL is used', async () => {
    const url = await databaseNamed('a café/50% of it');
    const database = openDatabase(url.href, 1);
    onTestFinished(() => database.close());
    const found = await database.run((db) => db.execute('SELECT current_database() AS name'));
    expect([...found]).toEqual([{ name: 'a café/50% of it' }]);
  });

  it('with another encoding than UTF8 is refused, with what to do', async () => {
    const server = postgres(inject('postgresUrl'), { max: 1 });
    onTestFinished(() => server.end());
    const [{ version } = { version: 0 }] = await server<{ version: number }[]>`
      SELECT current_setting('server_version_num')::int AS version`;
    const provider = version >= 150_000 ? 'LOCALE_PROVIDER libc' : '';
    const url = await databaseNamed('of_latin1', `ENCODING 'LATIN1' ${provider} LOCALE 'C'`);
    const failure = await failureOf(url.href);
    expect(failure?.message).toMatch(
      /^database of_latin1 has the encoding LATIN1, and firelock needs UTF8: .*TEMPLATE template0 ENCODING 'UTF8'$/,
    );
    expect(databaseTrouble(failure)).toBe('the database has an encoding other than UTF8');
  });

  it('without a schema that its role may use is refused, with what to do, and used once it has one', async () => {
    const { url, name, admin } = await roleOfTest();
    const at = new URL(url);
    at.searchParams.set('search_path', 'tenant');
    const message = new RegExp(
      `^search_path is tenant, and names no schema that exists and that role ${name} may use: CREATE SCHEMA`,
    );
    const failure = await failureOf(at.href);
    expect(failure?.message).toMatch(message);
    expect(databaseTrouble(failure)).toBe('no schema of search_path exists that the role may use');
    await admin.unsafe('CREATE SCHEMA tenant');
    expect((await failureOf(at.href))?.message).toMatch(message);
    await admin.unsafe(`GRANT USAGE, CREATE ON SCHEMA tenant TO ${name}`);
    expect(await failureOf(at.href)).toBe(null);
    const tenant = postgres(url, { max: 1 });
    onTestFinished(() => tenant.end());
    expect(await tenant`SELECT to_regclass('tenant.schedules') IS NOT NULL AS there`).toEqual([{ there: true }]);
  });
});

/** What the API answers when the work fails, and how often the database was said to be the reason. */
async function answerTo(url: string, statement = 'SELECT 1') {
  const told: FirelockEvent[] = [];
  const database = tellingTroubles(openDatabase(url, 1), { emit: (event) => void told.push(event) });
  onTestFinished(() => database.close());
  const failed = await database
    .run((db) => db.execute(sql.raw(statement)))
    .then(
      () => null,
      (error: unknown) => error,
    );
  const { status, message } = toProblem(failed);
  return { status, message, told: told.map(({ type }) => type) };
}

const because = (message: string | RegExp) => ({
  status: 503,
  message: typeof message === 'string' ? message : (expect.stringMatching(message) as string),
  told: ['databaseFailed'],
});

// A pooler has reasons of its own.
it.skipIf(THROUGH_POOLER)('the API says why the database does not do its work', async () => {
  const { url, name, admin } = await roleOfTest();
  expect(await answerTo(url.replace('daemon', 'wrong'))).toEqual(because(/refuses the login/));
  expect(await answerTo(`${url}_gone`)).toEqual(because('the database does not exist'));
  expect(await answerTo(url.replace(/:\d+\//, ':9/'))).toEqual(because('the database is out of reach'));
  await admin.unsafe(`CREATE TABLE of_others (); ALTER ROLE ${name} CONNECTION LIMIT 0`);
  expect(await answerTo(url)).toEqual(because('the database has too many connections'));
  await admin.unsafe(`ALTER ROLE ${name} CONNECTION LIMIT -1`);
  expect(await answerTo(url, 'SELECT FROM of_others')).toEqual(because(/lacks a right/));
  const raised = (code: string) => answerTo(url, `DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`);
  expect(await raised('53100')).toEqual(because('the disk of the database is full'));
  expect(await raised('57P01')).toEqual(because('the database is shutting down or starting'));
  // What a caller has sent is the caller's.
  expect(await raised('22003')).toMatchObject({ status: 400, told: [] });
});

const OLDEST = 14;

it('the server of a run is of a version that is supported, and of the one that was asked for', async () => {
  const server = postgres(inject('postgresUrl'), { max: 1 });
  try {
    const [row] = await server`SELECT current_setting('server_version_num')::int / 10000 AS major`;
    expect(row?.['major']).toBeGreaterThanOrEqual(OLDEST);
    const asked = inject('postgresMajor');
    if (asked !== undefined) expect(row?.['major']).toBe(asked);
  } finally {
    await server.end();
  }
});
