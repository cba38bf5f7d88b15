import { sql } from 'drizzle-orm';
import { DAY_MS, dayOf } from '../core/time/utc-day.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { Executor } from './executor.ts';
import { type InstantText, rowsOf, toInstant } from './sql/rows.ts';

/** The runs that ended on one UTC day: what is dropped as a whole. */
export interface Partition {
  /** The first moment of the day. */
  day: Instant;
  /** As SQL names its table. */
  table: string;
}

/** The oldest first; without the default partition, which holds only what ended on a day that has no table yet. */
export async function listPartitions(db: Executor): Promise<Partition[]> {
  const rows = await rowsOf<{ name: string; lower: InstantText }>(
    db,
    sql`SELECT i.inhrelid::regclass::text AS name, bounds.lower FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
      LATERAL (SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM [(]''([^'']+)''')::timestamptz AS lower) AS bounds
    WHERE i.inhparent = 'history'::regclass AND bounds.lower IS NOT NULL ORDER BY bounds.lower`,
  );
  return rows.map(({ name, lower }) => ({ table: name, day: toInstant(lower) }));
}

/** Insert-only: vacuumed by the number of new rows, not by their share of the table. Partitions do not inherit this. */
const STORAGE = `autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000`;

/** A statement that waits for such a lock keeps all others waiting behind it. */
const LOCK_LIMIT_MS = 100;
const LIMIT_MS = 2_000;

/**
 * Gives a day a table of its own; nothing happens where it has one. Rows of that day that ended while it had none move there from the
 * default partition. Ends of runs wait for a moment meanwhile: a statement that had already chosen the default partition would be
 * refused there.
 * @throws isNotNow where a lock cannot be had
 */
export async function createPartition(db: Executor, day: Instant): Promise<void> {
  const table = `history_${isoInstant(day).slice(0, 10).replaceAll('-', '')}`;
  const [from, to] = [isoInstant(day), isoInstant(day + DAY_MS)];
  await alone(
    db,
    `IF to_regclass('${table}') IS NOT NULL THEN RETURN; END IF;
    CREATE TABLE ${table} (LIKE history INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES) WITH (${STORAGE});
    LOCK TABLE ONLY history IN SHARE ROW EXCLUSIVE MODE;
    LOCK TABLE history_other IN ACCESS EXCLUSIVE MODE;
    WITH moved AS (
      DELETE FROM history_other WHERE ended_at >= '${from}' AND ended_at < '${to}' RETURNING *
    ) INSERT INTO ${table} SELECT * FROM moved;
    ALTER TABLE history ATTACH PARTITION ${table} FOR VALUES FROM ('${from}') TO ('${to}');`,
  );
}

/** Days for which a partition is there, or made: from today on. */
export const DAYS_AHEAD = 3;

/** Days from today on that have no partition yet. */
export async function missingDays(db: Executor, now: Instant): Promise<Instant[]> {
  const there = new Set((await listPartitions(db)).map(({ day }) => day));
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, n) => dayOf(now) + n * DAY_MS);
  return days.filter((day) => !there.has(day));
}

/**
 * Drops a day, unread: however much ended on it, it takes as long as deleting its files.
 * @throws isNotNow where a lock cannot be had; isTableGone where another instance has dropped it
 */
export async function dropPartition(db: Executor, { table }: Partition): Promise<void> {
  await alone(db, `DROP TABLE ${table};`);
}

/**
 * Changes the tables of history, unless another instance does at this moment. As one message, commit and all: an instance that freezes
 * after it has sent it holds no lock.
 */
async function alone(db: Executor, body: string): Promise<void> {
  await db.execute(
    sql.raw(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}; SET LOCAL statement_timeout = ${LIMIT_MS};
    DO $firelock$
    BEGIN
      IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
        RAISE lock_not_available USING MESSAGE = 'another instance changes the tables of history';
      END IF;
      ${body}
    END
    $firelock$`),
  );
}

/** What ended before a moment on a day that never had a table of its own; answers how many rows it deleted. */
export async function deleteOtherBefore(db: Executor, before: Instant, limit: number): Promise<number> {
  const rows = await rowsOf(
    db,
    sql`DELETE FROM history_other WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM history_other WHERE ended_at < ${isoInstant(before)}::timestamptz LIMIT ${limit})) RETURNING 1`,
  );
  return rows.length;
}
