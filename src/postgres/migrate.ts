import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import { reasonOf } from '../runtime/reason.ts';
import { type Database, openDatabase } from './database.ts';
import { databaseNow } from './sql/database-now.ts';
import { isNotNow, isRightMissing } from './errors.ts';
import type { Executor } from './executor.ts';
import { createPartition, missingPartitions } from './history-partitions.ts';
import { RightsMissing } from './privileges.ts';
import { rowsOf } from './sql/rows.ts';

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url));
/** Long enough for the second process to wait for the first. */
const MIGRATION_LIMIT_MS = 10 * 60_000;
const LOCK_LIMIT_MS = 4_000;

/**
 * Brings the schema up to this version; answers how many migrations were applied. Any number of instances may start at
 * once on an empty database: the lock lets one work while the others wait. It belongs to the transaction, so it also
 * works behind a pooler. The list of applied migrations is in the same schema, so that several installations fit one
 * database.
 */
export async function migrate(url: string): Promise<number> {
  const database = openDatabase(url, 1);
  try {
    // Asked first, within the limit of any statement: so a database that does not answer is noticed soon.
    const missing = await database.run(missingMigrations);
    const applied =
      missing.length === 0
        ? 0
        : await database
            .transaction(applyMissing, MIGRATION_LIMIT_MS)
            .catch((error: unknown) => refused(database, error));
    await createMissingPartitions(database);
    return applied;
  } finally {
    await database.close();
  }
}

/** @throws RightsMissing */
async function refused(database: Database, error: unknown): Promise<never> {
  if (!isRightMissing(error)) throw error;
  const [row] = await database.run((db) =>
    rowsOf<{ role: string }>(db, sql`SELECT quote_ident(current_user) AS role`),
  );
  throw new RightsMissing(
    `the schema has to be migrated, and role ${row?.role ?? ''} may not (${reasonOf(error)}): run \`firelock migrate\` as the ` +
      'role that owns the tables, or set FIRELOCK_MIGRATION_DATABASE_URL to a URL of that role (docs/security.md)',
  );
}

/**
 * Before any run ends: after days of standstill, today gets its partition at once. If a lock cannot be taken, rows go
 * to the default partition until the loop that creates partitions moves them.
 */
async function createMissingPartitions(database: Database): Promise<void> {
  const missing = await database.run(async (db) => missingPartitions(db, await databaseNow(db)));
  for (const { parent, day } of missing) {
    await database
      .run((db) => createPartition(db, day, parent))
      .catch((error: unknown) => {
        // The check of rights names a missing right, together with all others (privileges.ts).
        if (!isNotNow(error) && !isRightMissing(error)) throw error;
      });
  }
}

async function applyMissing(tx: Executor): Promise<number> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(hashtext('firelock migrations ' || current_schema()))`);
  // Every statement on a table queues up behind a migration that waits for it: better to fail, and try again a little later.
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
    sql`SELECT t IS NOT NULL AND has_table_privilege(t, 'SELECT') AS there
    FROM to_regclass(quote_ident(current_schema()) || '.firelock_migrations') AS t`,
  );
  // Without the right to read it, no migration counts as applied: then the first statement of a migration is refused,
  // with the reason.
  const rows = table?.there
    ? await rowsOf<{ hash: string }>(db, sql`SELECT hash FROM firelock_migrations`)
    : [];
  const applied = new Set(rows.map((row) => row.hash));
  return readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).filter(({ hash }) => !applied.has(hash));
}
