import type { MigrationWait } from '../core/migration-wait.ts';
import { grantTo } from '../postgres/privileges.ts';
import { openDatabase } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import { migrate } from '../postgres/migrate.ts';
import { reasonOf } from '../runtime/reason.ts';

export interface MigrateOptions {
  databaseUrl: string;
  migrationDatabaseUrl: string | undefined;
  /** The role of the daemon; null: nothing is granted. */
  grantTo: string | null;
  signal: AbortSignal;
  print: (line: string) => void;
}

/** The command `firelock migrate [--grant-to ROLE]`; answers the exit code. Prints what it did, or why it did not. */
export async function migrateDatabase(options: MigrateOptions): Promise<number> {
  const { databaseUrl, migrationDatabaseUrl = databaseUrl, grantTo: role, signal, print } = options;
  const database = openDatabase(migrationDatabaseUrl, 1);
  try {
    // Migrating waits long for another process that already migrates; but if the server does not answer at all, the
    // command says so at once.
    await database.run(databaseNow);
    const applied = await migrate(migrationDatabaseUrl, { signal, onWait: (wait) => print(waitLine(wait)) });
    print(applied === 0 ? 'the schema is up to date' : `migrations applied: ${applied}`);
    if (role !== null) {
      await database.transaction((tx) => grantTo(tx, role));
      print(`role ${role} may do what the daemon does`);
    }
    return 0;
  } catch (error) {
    print(`failed: ${reasonOf(error)}`);
    return 1;
  } finally {
    await database.close();
  }
}

/** What `firelock migrate` and `firelock resume` print while a migration waits. */
export function waitLine({ migration, statement, error, tries, retryInMs, oldest }: MigrationWait): string {
  const inTheWay =
    oldest === null
      ? ''
      : `; the oldest transaction has the backend ${oldest.pid} and began ${oldest.seconds} s ago`;
  return `migration ${migration} waits (try ${tries}, the next in ${retryInMs / 1000} s): ${statement}: ${error}${inTheWay}`;
}
