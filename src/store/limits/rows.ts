import { sql } from 'drizzle-orm';
import { isoInstant } from '../../core/instant.ts';
import { TryAgain } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import type { NamedRows, NamedThing } from '../names/find-named.ts';
import { runsInScope } from '../scopes/in-scope.ts';

/** How many of its runs may be under way at once, and how they stand at this moment: those that a caller of some scope sees. */
export interface Limit extends NamedThing {
  description: string | null;
  maxRunning: number;
  /** Under way: claimed, or `running`. */
  running: number;
  /** Due, and not under way. */
  waiting: number;
}

interface Row extends Omit<Limit, 'maxRunning' | 'updatedAt'> {
  max_running: number;
  updated_at: InstantText;
}

export const LIMIT_ROWS: NamedRows<Limit> = {
  table: 'limits',
  whole: (page, scope) => {
    const conditions = [sql`r.limit_id = n.id`, ...runsInScope(scope, 'read')];
    return sql`SELECT n.*, counted.*, 0 AS row_bytes FROM (${page}) AS n, LATERAL (
      SELECT count(*) FILTER (WHERE r.status = 'running' OR r.claimed_by IS NOT NULL)::int AS running,
        count(*) FILTER (WHERE r.status = 'pending' AND r.claimed_by IS NULL
          AND r.due_at <= (SELECT clock_timestamp()))::int AS waiting
      FROM runs r WHERE ${sql.join(conditions, sql` AND `)}) AS counted`;
  },
  toThing: ({ id, description, max_running, version, updated_at, running, waiting }: Row) => {
    const updatedAt = toInstant(updated_at);
    return { id, description, maxRunning: max_running, running, waiting, version, updatedAt };
  },
};

/** @throws TryAgain if another caller has just created one of that id */
export async function createLimit(tx: Transaction, limit: Limit): Promise<void> {
  const { id, description, maxRunning, version, updatedAt } = limit;
  const rows = await rowsOf(tx)(sql`-- createLimit
    INSERT INTO limits (id, description, max_running, version, updated_at)
    VALUES (${id}, ${description}, ${maxRunning}, ${version}, ${isoInstant(updatedAt)}::timestamptz)
    ON CONFLICT DO NOTHING RETURNING id`);
  if (rows.length === 0) throw new TryAgain('a limit of that id was created meanwhile');
}

/** The caller has its row locked, and has waited while its places were given. */
export async function changeLockedLimit(tx: Transaction, limit: Limit): Promise<void> {
  const { id, description, maxRunning, version, updatedAt } = limit;
  await tx.execute(sql`-- changeLockedLimit
    UPDATE limits SET description = ${description}, max_running = ${maxRunning}, version = ${version},
      updated_at = ${isoInstant(updatedAt)}::timestamptz WHERE id = ${id}`);
}
