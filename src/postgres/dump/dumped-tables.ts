import { is, sql } from 'drizzle-orm';
import { PgTable, getTableConfig } from 'drizzle-orm/pg-core';
import type { Executor } from '../executor.ts';
import { isOfThisVersion } from '../migrate.ts';
import * as schema from '../schema.ts';
import type { DumpedTable } from './dump-file.ts';

/** Every table of this version. None refers to another one, so that their order does not matter. */
export const TABLES: readonly DumpedTable[] = Object.values(schema)
  .filter((part) => is(part, PgTable))
  .map((table) => {
    const { name, columns } = getTableConfig(table);
    return { table: name, columns: columns.map((column) => column.name) };
  });

/** Migrating fills it; restoring puts the dumped row in its place. */
export const NEVER_EMPTY = 'installation';

export function namesIn({ columns }: DumpedTable): string {
  return columns.map((name) => `"${name}"`).join(', ');
}

/** @throws Error unless each column is known here */
export async function checkSchema(db: Executor): Promise<void> {
  if (!(await isOfThisVersion(db)))
    throw new Error(
      'the schema of the database is not that of this version of firelock: use the one that works on it',
    );
}

/** A dump may take long, and so may who reads it. */
export async function setNoLimits(db: Executor): Promise<void> {
  await db.execute(sql`-- setNoLimits
    SELECT set_config(name, '0', true) FROM unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) AS name`);
}
