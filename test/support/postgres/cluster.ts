import { inject } from 'vitest';
import { migrate } from '../../../src/postgres/migrate.ts';
import { type Cluster, type TestDatabase, createDatabaseOn, executeAt, startCluster } from './server.ts';

export type { TestDatabase } from './server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A superuser's URL on the server of this run. */
    postgresUrl: string;
    /** Databases of that server to be copied; null: it is reached through a pooler. */
    templates: Templates | null;
    /** The files of a cluster that was never started. */
    unstarted: string;
  }
}

interface Templates {
  /** It has the schema, and partitions for the coming days. */
  migrated: string;
}

/** A server for tests of what happens to one. */
export function ownCluster(options: { survivesCrashes?: boolean } = {}): Promise<Cluster> {
  return startCluster({ ...options, from: inject('unstarted') });
}

/** A fresh, empty database on the server of this vitest run. */
export function createDatabase(): Promise<TestDatabase> {
  return createDatabaseOn(inject('postgresUrl'));
}

/** One with the schema and nothing in it; a copy is made in a fraction of the time that the migrations take. */
export async function createMigrated(): Promise<TestDatabase> {
  const template = inject('templates')?.migrated;
  if (template !== undefined) return createDatabaseOn(inject('postgresUrl'), template);
  const database = await createDatabase();
  await migrate(database.url);
  return database;
}

/** While a session has it open, it cannot be copied: nothing else may use it. */
export async function makeTemplates(adminUrl: string): Promise<Templates> {
  const migrated = await createDatabaseOn(adminUrl);
  await migrate(migrated.url);
  return { migrated: nameOf(migrated.url) };
}

export async function dropTemplates(adminUrl: string, { migrated }: Templates): Promise<void> {
  await executeAt(adminUrl, `drop database if exists ${migrated} with (force)`);
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
