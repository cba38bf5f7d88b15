import type { MigrationWait } from '../core/own-resources.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { reasonOf } from '../runtime/reason.ts';
import { type Database, openDatabase } from './database.ts';
import { isNotNow, isRightMissing } from './errors.ts';
import type { Executor } from './executor.ts';
import { createPartition, missingPartitions } from './history-partitions.ts';
import { applyMigration } from './migrations/apply-migration.ts';
import { asMigrator } from './migrations/locks.ts';
import { type Migration, readMigrations } from './migrations/read-migrations.ts';
import { RightsMissing } from './privileges.ts';
import { databaseNow, rowsOf } from './sql/rows.ts';

interface MigrateOptions {
  /** Called each time a migration cannot have a lock. */
  onWait?: (wait: MigrationWait) => void;
  /** Ends the waits. */
  signal?: AbortSignal;
  /** As drizzle-kit writes it; ours unless a test sets another. */
  folder?: string;
  /** The wait before the second try; the usual value unless a test sets another. */
  firstWaitMs?: number;
}

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url));
const FIRST_WAIT_MS = 1_000;
/** How often an instance asks whether another one has finished. */
const ASK_MS = 250;

/**
 * Brings the schema up to this version; answers how many migrations were applied. Any number of instances may start at
 * once on an empty database: one of them works, and the others ask until nothing is missing. Instances of the version before may work
 * meanwhile: a migration that cannot have a lock soon is tried again later, for as long as it takes. The list of applied migrations is
 * in the same schema, so that several installations fit one database.
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<number> {
  const { folder = MIGRATIONS_FOLDER, signal } = options;
  // One connection holds the lock, the other one works.
  const database = openDatabase(url, 2);
  try {
    const migrations = readMigrations(folder);
    let applied = 0;
    // Asked first, within the limit of any statement: so a database that does not answer is noticed soon.
    await database.run(checkUsable);
    while ((await database.run((db) => missingOf(db, migrations))).length > 0) {
      signal?.throwIfAborted();
      const count = await applyMissing(database, migrations, options).catch((error: unknown) =>
        refused(database, error),
      );
      if (count === null) await delay(ASK_MS, undefined, { signal });
      else applied += count;
    }
    await createMissingPartitions(database);
    return applied;
  } finally {
    await database.close();
  }
}

/** The schema is that of this version, or of a later one. */
export async function isMigrated(db: Executor): Promise<boolean> {
  await checkUsable(db);
  return (await missingOf(db, readMigrations(MIGRATIONS_FOLDER))).length === 0;
}

/** The schema is that of this version exactly: for what names each of its columns. */
export async function isOfThisVersion(db: Executor): Promise<boolean> {
  if (!(await isMigrated(db))) return false;
  const [row] = await rowsOf<{ applied: number }>(db)(sql`-- isOfThisVersion
    SELECT count(*)::int AS applied FROM firelock_migrations`);
  return row?.applied === readMigrations(MIGRATIONS_FOLDER).length;
}

/** The hashes of this version's migrations. */
export function migrationHashes(): string[] {
  return readMigrations(MIGRATIONS_FOLDER).map(({ hash }) => hash);
}

/** Null: another instance migrates. */
async function applyMissing(
  database: Database,
  migrations: readonly Migration[],
  { onWait = () => undefined, signal, firstWaitMs = FIRST_WAIT_MS }: MigrateOptions,
): Promise<number | null> {
  return asMigrator(database, async (holder) => {
    await database.run((db) =>
      db.execute(sql`-- applyMissing
        CREATE TABLE IF NOT EXISTS firelock_migrations (hash text PRIMARY KEY, applied_at timestamptz(3) NOT NULL)`),
    );
    const missing = await database.run((db) => missingOf(db, migrations));
    for (const migration of missing) await applyMigration({ database, holder, onWait, signal, firstWaitMs }, migration);
    return missing.length;
  });
}

async function missingOf(db: Executor, migrations: readonly Migration[]): Promise<Migration[]> {
  const [table] = await rowsOf<{ there: boolean }>(db)(sql`-- missingOf
    SELECT t IS NOT NULL AND has_table_privilege(t, 'SELECT') AS there
    FROM to_regclass(quote_ident(current_schema()) || '.firelock_migrations') AS t`);
  // Without the right to read it, no migration counts as applied: then the first statement of a migration is refused,
  // with the reason.
  const rows = table?.there
    ? await rowsOf<{ hash: string }>(db)(sql`-- missingOf
      SELECT hash FROM firelock_migrations`)
    : [];
  const applied = new Set(rows.map((row) => row.hash));
  return migrations.filter(({ hash }) => !applied.has(hash));
}

/** @throws RightsMissing */
async function refused(database: Database, error: unknown): Promise<never> {
  if (!isRightMissing(error)) throw error;
  const [row] = await database.run((db) =>
    rowsOf<{ role: string }>(db)(sql`-- refused
      SELECT quote_ident(current_user) AS role`),
  );
  throw new RightsMissing(
    `the schema has to be migrated, and role ${row?.role ?? ''} may not (${reasonOf(error)}): run \`firelock migrate\` as the ` +
      'role that owns the tables, or set FIRELOCK_MIGRATION_DATABASE_URL to a URL of that role (docs/database.md)',
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

/** The database cannot have the tables of firelock, or not where its role would look for them. */
class DatabaseUnusable extends Error {
  override readonly name = 'DatabaseUnusable';
  readonly code: '3F000' | 'NOT_UTF8';
  constructor(code: DatabaseUnusable['code'], message: string) {
    super(message);
    this.code = code;
  }
}

interface Found {
  database: string;
  encoding: string;
  schema: string | null;
  search_path: string;
  role: string;
}

/** Called before anything is migrated. @throws DatabaseUnusable */
async function checkUsable(db: Executor): Promise<void> {
  const [found] = await rowsOf<Found>(db)(sql`-- checkUsable
    SELECT quote_ident(current_database()) AS database, current_setting('server_encoding') AS encoding,
      current_schema() AS schema, current_setting('search_path') AS search_path, quote_ident(current_user) AS role`);
  if (!found) return;
  const { database, encoding, schema, search_path, role } = found;
  // Texts of users hold any characters, and a row that cannot be written would stop a batch.
  if (encoding !== 'UTF8')
    throw new DatabaseUnusable(
      'NOT_UTF8',
      `database ${database} has the encoding ${encoding}, and firelock needs UTF8: ` +
        "make another one by CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'",
    );
  if (schema === null)
    throw new DatabaseUnusable(
      '3F000',
      `search_path is ${search_path}, and names no schema that exists and that role ${role} may use: ` +
        `CREATE SCHEMA … AUTHORIZATION ${role}, or GRANT USAGE, CREATE ON SCHEMA … TO ${role}`,
    );
}
