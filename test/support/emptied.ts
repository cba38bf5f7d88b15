import postgres from 'postgres';
import { createMigrated } from './cluster.ts';

interface Migrated {
  url: string;
  /** How many relations, constraints, functions and triggers it has. */
  shape: string;
  drop: () => Promise<void>;
}

/** Of this test file: making a database takes several times as long as emptying one. */
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
    if ((await shapeOf(sql)) !== migrated.shape) return false;
    const tables = await sql<{ name: string }[]>`SELECT tablename AS name FROM pg_tables
      WHERE schemaname = 'public' AND tablename <> 'firelock_migrations'`;
    await sql.unsafe(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}`);
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
    (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal)) AS shape`;
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
