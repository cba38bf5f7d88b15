import postgres from 'postgres';
import { inject } from 'vitest';
import type { openDatabase } from '../../../src/postgres/database.ts';
import { until } from '../until.ts';
import { type TestDatabase, createMigrated } from './cluster.ts';
import { KEPT, type KeptPools, createKeptPools } from './kept-pools.ts';
import { THROUGH_POOLER } from './pooler.ts';

/** With the schema and nothing in it. `drop` leaves it, emptied, to the next who asks, unless its schema was changed. */
export interface MigratedDatabase extends TestDatabase {
  /** Pools whose sessions outlive the test. */
  readonly openDatabase: typeof openDatabase;
}

interface Reusable extends TestDatabase {
  /** Of this module, from test to test. */
  sql: postgres.Sql;
  pools: KeptPools;
  shape: string;
}

/** Of this worker, which runs many test files, by their servers: making a database takes several times as long as emptying one. */
const free = new Map<string, Reusable[]>();

export async function createMigratedDatabase(): Promise<MigratedDatabase> {
  const server = inject('postgresUrl');
  const here = free.get(server) ?? [];
  free.set(server, here);
  const migrated = here.pop() ?? (await reusable(await createMigrated()));
  let dropping: Promise<void> | undefined;
  return {
    url: migrated.url,
    openDatabase: migrated.pools.open,
    drop: () => (dropping ??= leave(migrated, here)),
  };
}

async function reusable(database: TestDatabase): Promise<Reusable> {
  const options = { max: 1, prepare: !THROUGH_POOLER, onnotice: () => undefined, fetch_types: false };
  const sql = postgres(database.url, options);
  const { shape } = await lookAt(sql);
  return { ...database, sql, shape, pools: createKeptPools(database.url) };
}

async function leave(migrated: Reusable, free: Reusable[]): Promise<void> {
  const { sql, pools } = migrated;
  await pools.giveBack();
  await endOthers(sql);
  const { shape, used } = await lookAt(sql);
  if (shape !== migrated.shape) {
    await Promise.all([pools.close(), sql.end({ timeout: 5 })]);
    await migrated.drop();
    return;
  }
  await empty(sql, used);
  free.push(migrated);
}

/** Sessions of the pools are idle by now; what another session still commits would be found by the next test. */
async function endOthers(sql: postgres.Sql): Promise<void> {
  const others = () => sql<{ pid: number }[]>`SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
      AND (application_name, state) IS DISTINCT FROM (${KEPT}, 'idle')`;
  // They end when they come to it.
  await until(async () => ((await others()).length === 0 ? true : null));
}

async function empty(sql: postgres.Sql, used: readonly UsedTable[]): Promise<void> {
  // Truncating makes new files for all of their indexes: for a few rows that takes fifty times as long.
  const statements = used.map(({ name, size }) => (size > SMALL_BYTES ? `TRUNCATE ${name}` : `DELETE FROM ${name}`));
  await sql.unsafe([...statements, 'INSERT INTO installation DEFAULT VALUES'].join(';'));
}

const SMALL_BYTES = 1_000_000;

interface UsedTable {
  name: string;
  size: number;
}

/** What a test may have changed beside rows, in one text; and the tables that may have rows. */
async function lookAt(sql: postgres.Sql): Promise<{ shape: string; used: UsedTable[] }> {
  const [row] = await sql<{ shape: string; used: UsedTable[] | null }[]>`
    WITH relations AS MATERIALIZED (
      SELECT oid, relname, relkind, relacl, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    sizes AS MATERIALIZED (
      SELECT oid, pg_relation_size(oid) AS size FROM relations WHERE relkind = 'r' AND relname <> 'firelock_migrations')
    SELECT concat_ws(' ',
      (SELECT string_agg(concat_ws(' ', relname, relacl, reloptions), ' ' ORDER BY relname) FROM relations),
      (SELECT count(*) FROM pg_constraint WHERE connamespace = 'public'::regnamespace),
      (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
      (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal),
      (SELECT count(*) FROM pg_attribute a JOIN relations c ON c.oid = a.attrelid WHERE NOT a.attisdropped),
      (SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
        WHERE d.datname = current_database())) AS shape,
      (SELECT json_agg(json_build_object('name', oid::regclass::text, 'size', size)) FROM sizes WHERE size > 0) AS used`;
  return { shape: row?.shape ?? '', used: row?.used ?? [] };
}
