import postgres from 'postgres';
import { createMigrated } from './cluster.ts';
import { until } from '../until.ts';

interface Migrated {
  url: string;
  /** How many relations, columns, constraints, functions and triggers it has. */
  shape: string;
  drop: () => Promise<void>;
}

const SMALL_BYTES = 1_000_000;

/** Of this worker, which runs many test files: making a database takes several times as long as emptying one. */
const free: Migrated[] = [];

/** A database with the schema and nothing in it; `drop` leaves it to the next who asks, unless its schema was changed. */
export async function createMigratedDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const migrated = free.pop() ?? (await create());
  return { url: migrated.url, drop: () => leave(migrated) };
}

async function create(): Promise<Migrated> {
  const { url, drop } = await createMigrated();
  return { url, drop, shape: await alone(url, shapeOf) };
}

async function leave(migrated: Migrated): Promise<void> {
  const isAsItWas = await alone(migrated.url, async (sql) => {
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    // They end when they come to it: what one still commits would be found by the next test.
    await until(async () => {
      const others =
        await sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'`;
      return others.length === 0 ? true : null;
    });
    if ((await shapeOf(sql)) !== migrated.shape) return false;
    const tables = await sql<{ name: string; size: number }[]>`
      SELECT oid::regclass::text AS name, pg_relation_size(oid)::int AS size FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'firelock_migrations'
        AND pg_relation_size(oid) > 0`;
    // Truncating makes new files for all of their indexes: for a few rows that takes fifty times as long.
    const statements = tables.map(({ name, size }) =>
      size > SMALL_BYTES ? `TRUNCATE ${name}` : `DELETE FROM ${name}`,
    );
    await sql.unsafe([...statements, 'INSERT INTO installation DEFAULT VALUES'].join(';'));
    return true;
  });
  if (isAsItWas) free.push(migrated);
  else await migrated.drop();
}

async function shapeOf(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ shape: string }[]>`SELECT concat_ws(' ',
    (SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_constraint WHERE connamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal),
    (SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped)) AS shape`;
  return row?.shape ?? '';
}

async function alone<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined, fetch_types: false });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
