import { sql } from 'drizzle-orm';
import { type Instant, DAY_MS, dayOf, isoInstant } from '../core/instant.ts';
import type { Executor } from './executor.ts';
import { type InstantText, rowsOf, toInstant } from './sql/rows.ts';

/** The tables that have a partition for each UTC day: their rows are dropped by the day. */
export const BY_DAY = ['history', 'audit', 'run_logs'] as const;

type ByDay = (typeof BY_DAY)[number];

/** The rows of one UTC day: the runs that ended on it, the entries of the audit, or the logs of the runs that were due on it. */
export interface Partition {
  parent: ByDay;
  /** The first moment of the day. */
  day: Instant;
  /** The name of the partition in SQL. */
  table: string;
}

/** The oldest first; without the default partition, which only contains rows of days that have no partition yet, and what has no day. */
export async function listPartitions(db: Executor, parent: ByDay = 'history'): Promise<Partition[]> {
  const rows = await rowsOf<{ name: string; lower: InstantText }>(db)(sql`-- listPartitions
    SELECT i.inhrelid::regclass::text AS name, bounds.lower FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
      LATERAL (SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM [(]''([^'']+)''')::timestamptz AS lower) AS bounds
    WHERE i.inhparent = ${parent}::regclass AND isfinite(bounds.lower) ORDER BY bounds.lower`);
  return rows.map(({ name, lower }) => ({ parent, table: name, day: toInstant(lower) }));
}

/** A statement that waits for such a lock makes all others wait behind it. */
const LOCK_LIMIT_MS = 100;
const LIMIT_MS = 2_000;

/**
 * Gives a day a partition of its own; does nothing if it has one. Rows of that day that were written before move there
 * from the default partition. Writers wait for a moment meanwhile: otherwise a statement that had already chosen the
 * default partition would be refused. @throws isNotNow if a lock cannot be taken
 */
export async function createPartition(db: Executor, day: Instant, parent: ByDay = 'history'): Promise<void> {
  await alone(db, `SELECT firelock_create_day('${parent}', '${dateOf(day)}')`);
}

/** The days that must have a partition: from today on. */
export const DAYS_AHEAD = 3;

/** Days from today on that have no partition of this table yet. */
async function missingDays(db: Executor, now: Instant, parent: ByDay = 'history'): Promise<Instant[]> {
  const there = new Set((await listPartitions(db, parent)).map(({ day }) => day));
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, n) => dayOf(now) + n * DAY_MS);
  return days.filter((day) => !there.has(day));
}

/** The same for all such tables, by day. */
export async function missingPartitions(db: Executor, now: Instant): Promise<Omit<Partition, 'table'>[]> {
  const missing: Omit<Partition, 'table'>[] = [];
  for (const parent of BY_DAY) missing.push(...(await missingDays(db, now, parent)).map((day) => ({ parent, day })));
  return missing.sort((one, other) => one.day - other.day);
}

/**
 * Drops a day, unread: however many rows it has, that takes as long as deleting its files.
 * @throws isNotNow if a lock cannot be taken; isTableGone if another instance has dropped it
 */
export async function dropPartition(db: Executor, { parent, day }: Pick<Partition, 'parent' | 'day'>): Promise<void> {
  await alone(db, `SELECT firelock_drop_day('${parent}', '${dateOf(day)}')`);
}

/**
 * Changes these tables by a function of the database, which has the right to (drizzle/0000_initial.sql); the
 * function does it in full, or refuses. Sent as one message, including the commit: an instance that freezes after
 * sending leaves nothing locked.
 */
async function alone(db: Executor, statement: string): Promise<void> {
  await db.execute(
    sql.raw(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}; SET LOCAL statement_timeout = ${LIMIT_MS}; ${statement}`),
  );
}

function dateOf(day: Instant): string {
  return isoInstant(day).slice(0, 10);
}

/** Those whose default partition is emptied by the day. */
export const EMPTIED_BY_DAY = ['history', 'audit'] as const;

const OTHER = {
  history: { table: sql.raw('history_other'), moment: sql.raw('ended_at') },
  audit: { table: sql.raw('audit_other'), moment: sql.raw('at') },
} satisfies Record<(typeof EMPTIED_BY_DAY)[number], object>;

/** Deletes rows of before a moment on a day that never had a partition of its own; answers how many. */
export async function deleteOtherBefore(
  db: Executor,
  before: Instant,
  limit: number,
  parent: (typeof EMPTIED_BY_DAY)[number] = 'history',
): Promise<number> {
  const { table, moment } = OTHER[parent];
  const rows = await rowsOf(db)(sql`-- deleteOtherBefore
    DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${table} WHERE ${moment} < ${isoInstant(before)}::timestamptz LIMIT ${limit})) RETURNING 1`);
  return rows.length;
}
