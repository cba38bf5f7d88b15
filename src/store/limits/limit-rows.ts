import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { runsInScope } from '../scopes/in-scope.ts';
import { readRangeByRange } from '../scopes/range-by-range.ts';

/** How many of its runs may be under way at once. */
export interface Limit {
  id: string;
  description: string | null;
  maxRunning: number;
  updatedAt: Instant;
}

/** A limit, and the number of its runs in each state at this moment: of those that a caller of some scope sees. */
export interface LimitState extends Limit {
  /** Under way: claimed, or `running`. */
  running: number;
  /** Due, and not under way. */
  waiting: number;
}

interface Row {
  id: string;
  description: string | null;
  max_running: number;
  updated_at: InstantText;
  running: number;
  waiting: number;
}

/** Ordered by id; at most `limit`, only ids after `after`. */
export async function listLimits(
  db: Executor,
  { scope, after = null, limit }: { scope: Scope; after?: string | null | undefined; limit: number },
): Promise<LimitState[]> {
  const behind = sql`${after}::text IS NULL OR id > ${after}`;
  const rows = await readRangeByRange({ scope, after, limit }, sql`id`, ([inRange], most) =>
    rowsOf<Row>(db)(sql`-- listLimits
    SELECT l.*, counted.* FROM (
      SELECT * FROM limits WHERE ${inRange ? sql`${inRange} AND (${behind})` : behind} ORDER BY id LIMIT ${most}) AS l, ${counted(scope)}
    ORDER BY l.id`),
  );
  return rows.map(toState);
}

export async function findLimit(
  db: Executor,
  { id, scope }: { id: string; scope: Scope },
): Promise<LimitState | null> {
  const [row] = await rowsOf<Row>(db)(sql`-- findLimit
    SELECT l.*, counted.* FROM limits l, ${counted(scope)} WHERE l.id = ${id}`);
  return row ? toState(row) : null;
}

/** Runs that name the limit `l`. */
function counted(scope: Scope): SQL {
  const conditions = [sql`r.limit_id = l.id`, ...runsInScope(scope, 'read')];
  return sql`LATERAL (
      SELECT count(*) FILTER (WHERE r.status = 'running' OR r.claimed_by IS NOT NULL)::int AS running,
        count(*) FILTER (WHERE r.status = 'pending' AND r.claimed_by IS NULL
          AND r.due_at <= (SELECT clock_timestamp()))::int AS waiting
      FROM runs r WHERE ${sql.join(conditions, sql` AND `)}) AS counted`;
}

/** Creates or replaces it; waits while its places are given. Answers whether it is new, and whether it is unchanged. */
export async function writeLimit(
  tx: Executor,
  { id, description, maxRunning, updatedAt }: Limit,
): Promise<{ created: boolean; changed: boolean }> {
  const [row] = await rowsOf<{ created: boolean; changed: boolean }>(tx)(sql`-- writeLimit
    INSERT INTO limits (id, description, max_running, updated_at) VALUES (${id}, ${description}, ${maxRunning}, ${isoInstant(updatedAt)}::timestamptz)
    ON CONFLICT (id) DO UPDATE SET description = excluded.description, max_running = excluded.max_running,
      updated_at = CASE WHEN (limits.description, limits.max_running) IS DISTINCT FROM (excluded.description, excluded.max_running)
        THEN excluded.updated_at ELSE limits.updated_at END
    RETURNING xmax = 0 AS created, updated_at = ${isoInstant(updatedAt)}::timestamptz AS changed`);
  return row ?? { created: false, changed: false };
}

/** Until the transaction ends, no call can name the limit anew: see keepNamed. False: there is none. */
export async function lockLimitToDelete(tx: Transaction, id: string): Promise<boolean> {
  const rows = await rowsOf(tx)(sql`-- lockLimitToDelete
    SELECT id FROM limits WHERE id = ${id} FOR UPDATE`);
  return rows.length > 0;
}

export async function deleteLimit(tx: Transaction, id: string): Promise<void> {
  await tx.execute(sql`-- deleteLimit
    DELETE FROM limits WHERE id = ${id}`);
}

function toState({ id, description, max_running, updated_at, running, waiting }: Row): LimitState {
  return { id, description, maxRunning: max_running, updatedAt: toInstant(updated_at), running, waiting };
}
