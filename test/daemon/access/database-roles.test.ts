// @module-tag long
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { isoInstant } from '../../../src/core/instant.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { checkRights } from '../../../src/postgres/privileges.ts';
import { type DaemonHere, daemonHere, startDaemonHere } from '../../support/daemon-here.ts';
import { dayAgo, partitionOf } from '../../support/history.ts';
import { type TestDatabase, createDatabase } from '../../support/postgres/cluster.ts';
import { THROUGH_POOLER } from '../../support/postgres/pooler.ts';
import { startReceiver } from '../../support/receiver.ts';
import { QUICK_START } from '../../support/runner/quick-start.ts';
import { until } from '../../support/until.ts';

const suffix = randomBytes(4).toString('hex');
const [OWNER, APP] = [`owner_${suffix}`, `app_${suffix}`];
/** Kept no longer than 30 days. */
const OLD = dayAgo(40);

let database: TestDatabase;
let admin: postgres.Sql;
let app: postgres.Sql;

function urlOf(role: string): string {
  const url = new URL(database.url);
  url.username = role;
  url.password = 'swordfish';
  return url.href;
}

beforeAll(async () => {
  database = await createDatabase();
  admin = postgres(database.url, { max: 1, onnotice: () => undefined });
  for (const role of [OWNER, APP]) await admin.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'swordfish'`);
  await admin.unsafe(`REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC;
    GRANT ALL ON SCHEMA public TO ${OWNER}`);
  app = postgres(urlOf(APP), { max: 1, onnotice: () => undefined });
});
afterAll(async () => {
  await app.end();
  await admin.end();
  // With the database go all rights in it.
  await database.drop();
  const server = postgres(inject('postgresUrl'), { max: 1, onnotice: () => undefined });
  await server.unsafe(`DROP ROLE ${OWNER}, ${APP}`);
  await server.end();
});

function firelock(args: readonly string[], variables: Record<string, string>) {
  const { PATH, HOME } = process.env;
  const main = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts');
  const env = { PATH, HOME, ...QUICK_START, ...variables };
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], { env, encoding: 'utf8' });
  return { status, lines: `${stdout}${stderr}`.trim().split('\n') };
}

const refusal = (statement: string) =>
  app.unsafe(statement).then(
    () => 'done',
    (error: unknown) => (error as { code: string }).code,
  );

const there = async (table: string) =>
  (await admin`SELECT to_regclass(${table}) IS NOT NULL AS there`)[0]?.['there'] as boolean;

test.skipIf(THROUGH_POOLER)('a daemon whose role may not migrate says so, and what to do', async () => {
  const daemon = await startDaemonHere(urlOf(APP));
  const { reason } = await daemon.logged(/^the migrations loop failed/);
  expect(reason).toMatch(
    new RegExp(`role ${APP} may not .*: run \`firelock migrate\` as the role that owns the tables, or set FIREL`),
  );
  expect((await daemon.call('GET', '/readyz')).status).toBe(503);
  await daemon.stop();
  expect(await there('runs')).toBe(false);
});

test.skipIf(THROUGH_POOLER)('if the tables exist and rights are missing, it names these', async () => {
  expect(await migrate(urlOf(OWNER))).toBeGreaterThan(0);
  await admin.unsafe(`GRANT SELECT ON firelock_migrations TO ${APP}`);
  // As the daemon asks after it has migrated.
  const asApp = openDatabase(urlOf(APP), 1);
  await expect(checkRights(asApp)).rejects.toThrow(
    new RegExp(`role ${APP} lacks SELECT on \\w+, .*, and \\d+ more: run \`firelock migrate --grant-to ${APP}\``),
  );
  await asApp.close();
});

test.skipIf(THROUGH_POOLER)('a daemon on a role without rights on the schema can do all of its work', async () => {
  const variables = { DATABASE_URL: urlOf(APP), FIRELOCK_MIGRATION_DATABASE_URL: urlOf(OWNER) };
  const unknown = firelock(['migrate', '--grant-to', 'no_such_role'], variables);
  expect(unknown).toEqual({
    status: 1,
    lines: ['the schema is up to date', expect.stringContaining('"no_such_role" does not exist')],
  });
  expect(firelock(['migrate', '--grant-to', APP], variables)).toEqual({
    status: 0,
    lines: ['the schema is up to date', `role ${APP} has the rights that the daemon needs`],
  });
  await app.unsafe(`SELECT firelock_create_day('history', '${isoInstant(OLD).slice(0, 10)}')`);
  await app.unsafe(`SELECT firelock_create_day('audit', '${isoInstant(OLD).slice(0, 10)}')`);
  await admin.unsafe(`DROP TABLE ${partitionOf(dayAgo(0))}, ${partitionOf(dayAgo(-2))}`);

  const daemon = await daemonHere(urlOf(APP));
  await works(daemon);
  for (const day of [dayAgo(0), dayAgo(-2)]) await until(async () => (await there(partitionOf(day))) || null);
  for (const table of [partitionOf(OLD), partitionOf(OLD).replace('history', 'audit')])
    await until(async () => !(await there(table)) || null);
  await daemon.stop();
  // No loop has found that it may not do something. A run may have been open when its schedule was deleted.
  const told = daemon.log().filter(({ level, msg }) => level >= 40 && msg !== 'open runs abandoned');
  expect(told).toEqual([]);
});

/** Fires, runs once, is edited, and tells of it. */
async function works(daemon: DaemonHere): Promise<void> {
  const receiver = await startReceiver();
  const target = { type: 'http', url: receiver.url };
  const put = await daemon.call('PUT', '/api/v1/schedules/s', { cron: '* * * * * *', target });
  expect(put.status).toBe(201);
  await until(async () => {
    const { body } = await daemon.call('GET', '/api/v1/schedules/s/runs?status=succeeded');
    return (body as { items: object[] }).items.length > 0 || null;
  });
  expect((await daemon.call('DELETE', '/api/v1/schedules/s')).status).toBe(204);
  const { body } = await daemon.call('GET', '/api/v1/audit');
  expect((body as { items: object[] }).items).toMatchObject([
    { action: 'schedule.delete' },
    { action: 'schedule.create' },
  ]);
  await receiver.close();
}

test.skipIf(THROUGH_POOLER)('that role may do nothing else', async () => {
  for (const statement of [
    'CREATE TABLE mine (id int)',
    'CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
    'DROP TABLE history_other',
    'ALTER TABLE runs ADD COLUMN mine int',
    'CREATE INDEX ON runs (id)',
    'CREATE TRIGGER t BEFORE DELETE ON history_other EXECUTE FUNCTION suppress_redundant_updates_trigger()',
    'TRUNCATE runs',
    'INSERT INTO firelock_migrations VALUES (1, now())',
  ])
    expect([statement, await refusal(statement)]).toEqual([statement, '42501']);
});

test.skipIf(THROUGH_POOLER)(
  'the functions of days take a day of history or of the audit, and nothing else',
  async () => {
    const [INVALID, NO_TABLE, NO_DATE] = ['22023', '42P01', '22007'];
    for (const [call, code] of [
      [`firelock_create_day('runs', '2027-01-01')`, INVALID],
      [`firelock_create_day(NULL, '2027-01-01')`, INVALID],
      [`firelock_create_day('history', NULL)`, INVALID],
      [`firelock_create_day('history', 'infinity')`, INVALID],
      [`firelock_create_day('history', 'x; DROP TABLE runs')`, NO_DATE],
      [`firelock_create_day('history"; DROP TABLE runs; --', '2027-01-01')`, INVALID],
      [`firelock_drop_day('runs', '2027-01-01')`, INVALID],
      [`firelock_drop_day('history', '1999-01-01')`, NO_TABLE],
      [`firelock_drop_day('history', NULL)`, INVALID],
      [`firelock_drop_day(NULL, NULL)`, INVALID],
    ] as const)
      expect([call, await refusal(`SELECT ${call}`)]).toEqual([call, code]);
    // What has the name of a day and is none stays; what the caller names alike is not looked at.
    await admin.unsafe(`CREATE TABLE history_19990101 (id int); ALTER TABLE history_19990101 OWNER TO ${OWNER}`);
    expect(await refusal(`SELECT firelock_drop_day('history', '1999-01-01')`)).toBe(NO_TABLE);
    await app.unsafe('CREATE TEMP TABLE history_other (id int); CREATE TEMP TABLE history_19990102 (id int)');
    await app.unsafe(`SET search_path = pg_temp, public; SELECT public.firelock_create_day('history', '1999-01-02')`);
    expect(await there('public.history_19990102')).toBe(true);
    expect(await refusal(`SELECT public.firelock_drop_day('history', '1999-01-02')`)).toBe('done');
    // No other role may call them.
    await admin.unsafe(`REVOKE EXECUTE ON FUNCTION firelock_drop_day(text, date) FROM ${APP}`);
    expect(await refusal(`SELECT public.firelock_drop_day('history', '1999-01-02')`)).toBe('42501');
  },
);
