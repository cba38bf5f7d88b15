import { sql } from 'drizzle-orm';
import { setTimeout as delay } from 'node:timers/promises';
import type { MigrationWait } from '../../core/own-resources.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Database } from '../database.ts';
import { NotNow, isLockedByOthers, isRepeatable, isStatementCancelled } from '../errors.ts';
import type { Executor } from '../executor.ts';
import { rowsOf } from '../sql/rows.ts';
import { buildIndexOf } from './build-index.ts';
import type { Migration } from './read-migrations.ts';
import { shortlyOn } from './short-steps.ts';

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
/** Such a statement makes no other wait. */
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
  return (
    isLockedByOthers(error) || isStatementCancelled(error) || isRepeatable(error) || error instanceof NotNow
  );
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
