import { sql, type SQL } from 'drizzle-orm';
import { setTimeout as delay } from 'node:timers/promises';
import type { MigrationWait } from '../../core/own-resources.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Database } from '../database.ts';
import { NotNow, isLockedByOthers, isRepeatable, isStatementCancelled, isTableGone } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { rowsOf } from '../sql/rows.ts';
import type { Migration } from './read-migrations.ts';
import { shortlyOn, type Shortly } from './locks.ts';

interface ApplyDeps {
  database: Database;
  /** The backend that holds the migrators' lock: its transaction is in no one's way. */
  holder: number;
  onWait: (wait: MigrationWait) => void;
  signal: AbortSignal | undefined;
  /** The wait before the second try, which doubles with each. */
  firstWaitMs: number;
}

const MAX_WAIT_MS = 30_000;
/** Of a statement outside of a transaction, which makes no other wait. */
const OUTSIDE_LIMIT_MS = 24 * 3_600_000;

/** Applies a migration, as often as it takes. @throws what `signal` says, and what else than a lock is in the way */
export async function applyMigration(deps: ApplyDeps, migration: Migration): Promise<void> {
  const { database } = deps;
  const steps = { database, shortly: shortlyOn(database) };
  if (migration.isOutside) {
    for (const statement of migration.statements)
      await untilDone(deps, migration, async (at) => {
        at(statement);
        if (!(await buildIndexOf(steps, statement)))
          await database.run((db) => db.execute(sql.raw(statement)), OUTSIDE_LIMIT_MS);
      });
    await database.run((db) => recordApplied(db, migration));
    return;
  }
  await untilDone(deps, migration, (at) =>
    steps.shortly(async (tx) => {
      for (const statement of migration.statements) {
        at(statement);
        await tx.execute(sql.raw(statement));
      }
      await recordApplied(tx, migration);
    }),
  );
}

async function recordApplied(db: Executor, { hash }: Migration): Promise<void> {
  await db.execute(sql`-- recordApplied
    INSERT INTO firelock_migrations VALUES (${hash}, clock_timestamp()) ON CONFLICT DO NOTHING`);
}

async function untilDone(
  deps: ApplyDeps,
  { name }: Migration,
  work: (at: (statement: string) => void) => Promise<void>,
): Promise<void> {
  let statement = '';
  for (let tries = 1; ; tries += 1) {
    deps.signal?.throwIfAborted();
    try {
      await work((begun) => (statement = begun));
      return;
    } catch (error) {
      if (!isInTheWay(error)) throw error;
      const retryInMs = Math.min(MAX_WAIT_MS, deps.firstWaitMs * 2 ** Math.min(tries - 1, 10));
      const [begun = ''] = statement.split('\n');
      const oldest = await oldestBeside(deps);
      const statementTimeout = isStatementCancelled(error) ? await ownTimeout(deps) : null;
      const wait = { migration: name, statement: begun.slice(0, 120), error: reasonOf(error) };
      deps.onWait({ ...wait, statementTimeout, tries, retryInMs, oldest });
      await delay(retryInMs, undefined, { signal: deps.signal });
    }
  }
}

function isInTheWay(error: unknown): boolean {
  return isLockedByOthers(error) || isStatementCancelled(error) || isRepeatable(error) || error instanceof NotNow;
}

/** What a role or a database sets for statements that run outside of a transaction; null: nothing. */
async function ownTimeout({ database }: ApplyDeps): Promise<string | null> {
  const [row] = await database.run((db) =>
    rowsOf<{ own: string }>(db)(sql`-- ownTimeout
      SELECT current_setting('statement_timeout') AS own`),
  );
  return row === undefined || row.own === '0' ? null : row.own;
}

async function oldestBeside({ database, holder }: ApplyDeps): Promise<MigrationWait['oldest']> {
  const rows = await database.run((db) =>
    rowsOf<{ pid: number; seconds: number }>(db)(sql`-- oldestBeside
      SELECT pid, round(extract(epoch FROM clock_timestamp() - xact_start))::int AS seconds FROM pg_stat_activity
      WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), ${holder}::int) AND xact_start IS NOT NULL
      ORDER BY xact_start LIMIT 1`),
  );
  return rows[0] ?? null;
}

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

const CREATE = /^CREATE (UNIQUE )?INDEX CONCURRENTLY "(\w+)" ON "(\w+)" (.+?);?$/s;
/** What PostgreSQL keeps of a name. */
const NAME_LIMIT = 63;

/**
 * Does a `CREATE INDEX CONCURRENTLY`, on a partitioned table partition by partition, so that writers go on. It may be repeated: what
 * a build that was broken off has left behind is built anew. False: the statement is another one.
 */
async function buildIndexOf(steps: Steps, statement: string): Promise<boolean> {
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
  await shortly((tx) => tx.execute(sql.raw(`CREATE ${unique}INDEX IF NOT EXISTS "${name}" ON ONLY "${table}" ${on}`)));
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
  const alone = (text: string) => database.run((db) => db.execute(sql.raw(text)), OUTSIDE_LIMIT_MS);
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
