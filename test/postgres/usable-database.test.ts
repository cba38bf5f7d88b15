import postgres from 'postgres';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { migrate } from '../../src/postgres/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
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
    const sql = postgres(url, { max: 1 });
    onTestFinished(() => sql.end());
    expect(await sql`SELECT to_regclass('tenant.schedules') IS NOT NULL AS there`).toEqual([{ there: true }]);
  });
});
