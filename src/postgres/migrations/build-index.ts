import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../database.ts';
import { isTableGone } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { rowsOf } from '../sql/rows.ts';
import type { Shortly } from './short-steps.ts';

interface Steps {
  database: Database;
  shortly: Shortly;
}

interface Index {
  name: string;
  table: string;
  unique: string;
  /** From the method on: what drizzle-kit writes after the table. */
  on: string;
}

const LIMIT_MS = 24 * 3_600_000;
const CREATE = /^CREATE (UNIQUE )?INDEX CONCURRENTLY "(\w+)" ON "(\w+)" (.+?);?$/s;
/** What PostgreSQL keeps of a name. */
const NAME_LIMIT = 63;

/**
 * Does a `CREATE INDEX CONCURRENTLY`, on a partitioned table partition by partition, so that writers go on. It may be repeated: what
 * a build that was broken off has left behind is built anew. False: the statement is another one.
 */
export async function buildIndexOf(steps: Steps, statement: string): Promise<boolean> {
  const [, unique = '', name, table, on] = CREATE.exec(statement) ?? [];
  if (name === undefined || table === undefined || on === undefined) return false;
  const index = { name, table, unique, on };
  if (await isPartitioned(steps.database, table)) await buildOnPartitions(steps, index);
  else await build(steps, index);
  return true;
}

/** The parent's index has no rows. A partition that is made from now on gets its own with it, and one may be dropped at any moment. */
async function buildOnPartitions(steps: Steps, { name, table, unique, on }: Index): Promise<void> {
  const { database, shortly } = steps;
  await shortly((tx) =>
    tx.execute(sql.raw(`CREATE ${unique}INDEX IF NOT EXISTS "${name}" ON ONLY "${table}" ${on}`)),
  );
  for (;;) {
    const partition = await database.run((db) => nextWithout(db, name, table));
    if (partition === null) return;
    const own = `${partition}_${name}`.slice(0, NAME_LIMIT);
    try {
      await build(steps, { name: own, table: partition, unique, on });
      await shortly((tx) => tx.execute(sql.raw(`ALTER INDEX "${name}" ATTACH PARTITION "${own}"`)));
    } catch (error) {
      if (!isTableGone(error)) throw error;
    }
  }
}

async function build({ database, shortly }: Steps, { name, table, unique, on }: Index): Promise<void> {
  const state = await shortly(async (tx) => {
    // An index that is being built looks like one that was left behind. Every build keeps this lock on its table.
    await tx.execute(sql.raw(`LOCK TABLE "${table}" IN SHARE UPDATE EXCLUSIVE MODE`));
    return stateOf(tx, name);
  });
  if (state === 'valid') return;
  const alone = (text: string) => database.run((db) => db.execute(sql.raw(text)), LIMIT_MS);
  if (state === 'left behind') await alone(`DROP INDEX CONCURRENTLY IF EXISTS "${name}"`);
  await alone(`CREATE ${unique}INDEX CONCURRENTLY "${name}" ON "${table}" ${on}`);
}

async function stateOf(db: Executor, name: string): Promise<'valid' | 'left behind' | 'missing'> {
  const [row] = await rowsOf<{ valid: boolean }>(db)(sql`-- stateOf
    SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = ${classOf(name)}`);
  if (!row) return 'missing';
  return row.valid ? 'valid' : 'left behind';
}

async function isPartitioned(database: Database, table: string): Promise<boolean> {
  const rows = await database.run((db) =>
    rowsOf(db)(sql`-- isPartitioned
      SELECT FROM pg_partitioned_table WHERE partrelid = ${classOf(table)}`),
  );
  return rows.length > 0;
}

/** A partition that has no part of the parent's index yet. */
async function nextWithout(db: Executor, index: string, table: string): Promise<string | null> {
  const [row] = await rowsOf<{ name: string }>(db)(sql`-- nextWithout
    SELECT c.relname AS name FROM pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
    WHERE p.inhparent = ${classOf(table)} AND NOT EXISTS (
      SELECT FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid
      WHERE i.inhparent = ${classOf(index)} AND x.indrelid = c.oid)
    ORDER BY c.relname LIMIT 1`);
  return row?.name ?? null;
}

/** In the schema of this installation. */
function classOf(name: string): SQL {
  return sql`to_regclass(quote_ident(current_schema()) || '.' || quote_ident(${name}))`;
}
