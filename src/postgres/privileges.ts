import { is, sql } from 'drizzle-orm';
import { PgTable, getTableConfig } from 'drizzle-orm/pg-core';
import type { Database } from './database.ts';
import type { Executor } from './executor.ts';
import * as schema from './schema.ts';
import { texts } from './sql/arrays.ts';
import { rowsOf } from './sql/rows.ts';

/** What the daemon does with rows. It needs no other right to any table: it neither truncates tables nor creates references. */
const OF_ROWS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

/** The tables whose rows the daemon reads and writes: those of the schema, and the partitions that are not of a day. */
const WRITTEN = [
  ...Object.values(schema).flatMap((one) => (is(one, PgTable) ? [getTableConfig(one).name] : [])),
  ...['history_other', 'audit_other', 'run_logs_other', 'run_logs_late'],
];
const READ = ['all_runs', 'firelock_migrations'];

/** The functions that create and drop days, with the rights of their owner. */
const FUNCTIONS = ['firelock_create_day(text, date)', 'firelock_drop_day(text, date)'];

/** The role lacks rights that it needs. */
export class RightsMissing extends Error {
  override readonly name = 'RightsMissing';
  readonly code = '42501';
}

const MAX_NAMED = 5;

/** Called at the start: otherwise a missing right would show only when it is needed. @throws RightsMissing */
export async function checkRights(database: Database): Promise<void> {
  const missing = await database.run(missingRights);
  const [first] = missing;
  if (!first) return;
  const some = missing.slice(0, MAX_NAMED).map(({ what }) => what);
  const more = missing.length > some.length ? `, and ${missing.length - some.length} more` : '';
  throw new RightsMissing(
    `role ${first.role} lacks ${some.join(', ')}${more}: run \`firelock migrate --grant-to ${first.role}\` as the role that owns ` +
      'the tables (docs/database.md)',
  );
}

async function missingRights(db: Executor): Promise<{ role: string; what: string }[]> {
  return rowsOf<{ role: string; what: string }>(db)(sql`-- missingRights
    WITH needed AS (
      SELECT name, "right" FROM unnest(${texts(WRITTEN)}) AS name, unnest(${texts([...OF_ROWS])}) AS "right"
      UNION ALL SELECT name, 'SELECT' FROM unnest(${texts(READ)}) AS name
    )
    SELECT quote_ident(current_user) AS role, "right" || ' on ' || name AS what FROM needed
    WHERE NOT has_table_privilege(name::regclass, "right")
    UNION ALL SELECT quote_ident(current_user), 'EXECUTE on ' || name FROM unnest(${texts(FUNCTIONS)}) AS name
    WHERE NOT has_function_privilege(name::regprocedure, 'EXECUTE')`);
}

/**
 * Gives a role the rights for what the daemon does, and no others, also for tables of later versions. Run by the owner
 * of the tables; it may run repeatedly.
 */
export async function grantTo(db: Executor, role: string): Promise<void> {
  const to = sql.identifier(role);
  const [row] = await rowsOf<{ schema: string }>(db)(sql`-- grantTo
    SELECT current_schema() AS schema`);
  const inSchema = sql.identifier(row?.schema ?? '');
  const [rows, tables] = [sql.raw(OF_ROWS.join(', ')), sql.raw(WRITTEN.join(', '))];
  const [read, functions] = [sql.raw(READ.join(', ')), sql.raw(FUNCTIONS.join(', '))];
  for (const statement of [
    sql`GRANT USAGE ON SCHEMA ${inSchema} TO ${to}`,
    sql`GRANT ${rows} ON ${tables} TO ${to}`,
    sql`GRANT SELECT ON ${read} TO ${to}`,
    sql`GRANT EXECUTE ON FUNCTION ${functions} TO ${to}`,
    sql`ALTER DEFAULT PRIVILEGES IN SCHEMA ${inSchema} GRANT ${rows} ON TABLES TO ${to}`,
    sql`ALTER DEFAULT PRIVILEGES IN SCHEMA ${inSchema} GRANT EXECUTE ON FUNCTIONS TO ${to}`,
  ])
    await db.execute(statement);
}
