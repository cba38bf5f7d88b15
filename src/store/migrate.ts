import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import { openDatabase } from './database.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url));
/** Long enough for whoever comes second to wait for the first. */
const MIGRATION_LIMIT_MS = 10 * 60_000;
const LOCK_LIMIT_MS = 4_000;

/**
 * Brings the schema up to this version; answers how many migrations were applied. Any number of instances may start
 * at once on an empty database: the lock lets one work while the others wait, and belongs to the transaction, so it
 * holds behind a pooler too. What is applied stands in the same schema, so that several installations fit one database.
 */
export async function migrate(url: string): Promise<number> {
  const database = openDatabase(url, 1);
  try {
    // Asked first, within the limit of any statement: a database that does not answer is soon known for one.
    if ((await database.run(missingMigrations)).length === 0) return 0;
    return await database.transaction(applyMissing, MIGRATION_LIMIT_MS);
  } finally {
    await database.close();
  }
}

async function applyMissing(tx: Executor): Promise<number> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtext('firelock migrations ' || current_schema()))`);
  // Whoever reads or writes a table queues up behind a migration that waits for it: rather fail, and try again a little later.
  await tx.execute(sql.raw(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}`));
  await tx.execute(
    sql`CREATE TABLE IF NOT EXISTS firelock_migrations (hash text PRIMARY KEY, applied_at timestamptz(3) NOT NULL)`,
  );
  const missing = await missingMigrations(tx);
  for (const migration of missing) {
    for (const statement of migration.sql) await tx.execute(sql.raw(statement));
    await tx.execute(sql`INSERT INTO firelock_migrations VALUES (${migration.hash}, clock_timestamp())`);
  }
  return missing.length;
}

async function missingMigrations(db: Executor): Promise<MigrationMeta[]> {
  const [table] = await rowsOf<{ there: boolean }>(
    db,
    sql`SELECT to_regclass(quote_ident(current_schema()) || '.firelock_migrations') IS NOT NULL AS there`,
  );
  const rows = table?.there
    ? await rowsOf<{ hash: string }>(db, sql`SELECT hash FROM firelock_migrations`)
    : [];
  const applied = new Set(rows.map((row) => row.hash));
  return readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).filter(({ hash }) => !applied.has(hash));
}
