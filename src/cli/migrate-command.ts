import { migrate } from '../postgres/migrate.ts';
import { reasonOf } from '../runtime/reason.ts';

interface MigrateOptions {
  databaseUrl: string;
  /** Where only another role may change the schema. */
  migrationDatabaseUrl: string | undefined;
  print: (line: string) => void;
}

/** The command `firelock migrate`; answers the exit code. */
export async function migrateNow({
  databaseUrl,
  migrationDatabaseUrl,
  print,
}: MigrateOptions): Promise<number> {
  try {
    const count = await migrate(migrationDatabaseUrl ?? databaseUrl);
    print(count === 0 ? 'the schema is up to date' : `migrations applied: ${count}`);
    return 0;
  } catch (error) {
    print(`failed: ${reasonOf(error)}`);
    return 1;
  }
}
