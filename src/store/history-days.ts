import { type SQL, sql } from 'drizzle-orm';
import { DAY_MS, dayOf } from '../core/history-day.ts';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { Executor } from './executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from './rows.ts';

/** The runs of one UTC day (at first: of all days up to one), with their attempts: what is dropped as a whole. */
export interface HistoryDay {
  /** Inclusive; null: whatever is older. */
  from: Instant | null;
  /** Exclusive. */
  to: Instant;
  /** The tables they stand in, as SQL names them. */
  runs: string;
  attempts: string;
  /** They stand with others, in the default partition: the day has no tables of its own. */
  isInOther: boolean;
}

export interface History {
  /** Those with tables of their own, the oldest first. */
  days: HistoryDay[];
  /** The default partition. */
  other: Pick<HistoryDay, 'runs' | 'attempts'>;
}

export async function listHistory(db: Executor): Promise<History> {
  const rows = await rowsOf<{
    runs: string;
    attempts: string;
    lower: InstantText | null;
    upper: InstantText | null;
  }>(
    db,
    sql`WITH partitions AS MATERIALIZED (
      SELECT i.inhparent, i.inhrelid::regclass::text AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent IN ('runs'::regclass, 'attempts'::regclass)
    )
    SELECT r.name AS runs, a.name AS attempts, substring(r.bounds FROM 'FROM [(]''([^'']+)''')::timestamptz AS lower,
      substring(r.bounds FROM 'TO [(]''([^'']+)''')::timestamptz AS upper
    FROM partitions r JOIN partitions a ON a.inhparent = 'attempts'::regclass AND a.bounds = r.bounds
    WHERE r.inhparent = 'runs'::regclass ORDER BY upper`,
  );
  const days = rows.flatMap(({ runs, attempts, lower, upper }) =>
    upper === null
      ? []
      : [{ runs, attempts, from: toInstantOrNull(lower), to: toInstant(upper), isInOther: false }],
  );
  const other = rows.find(({ upper }) => upper === null);
  if (!other) throw new Error('history has no default partition');
  return { days, other: { runs: other.runs, attempts: other.attempts } };
}

/** How many runs of which days stand in the default partition. */
export async function countOther(
  db: Executor,
  { other }: History,
  { from, to }: { from?: Instant; to?: Instant },
): Promise<Map<Instant, number>> {
  const rows = await rowsOf<{ day: InstantText; runs: number }>(
    db,
    sql`SELECT date_trunc('day', scheduled_for, 'UTC') AS day, count(*)::int AS runs FROM ${sql.raw(other.runs)}
    WHERE ${from === undefined ? sql`true` : sql`scheduled_for >= ${isoInstant(from)}::timestamptz`}
      AND ${to === undefined ? sql`true` : sql`scheduled_for < ${isoInstant(to)}::timestamptz`}
    GROUP BY day ORDER BY day`,
  );
  return new Map(rows.map(({ day, runs }) => [toInstant(day), runs]));
}

/** Null: no day has been dropped yet. */
export async function droppedBefore(db: Executor): Promise<Instant | null> {
  const [row] = await rowsOf<{ at: InstantText }>(db, sql`SELECT dropped_before AS at FROM history`);
  return row ? toInstant(row.at) : null;
}

/** As migration 0001_storage has them: they are not inherited. */
const STORAGE_OF_RUNS = `autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0`;

/** Whoever waits for such a lock keeps all others waiting behind it. */
const LOCK_LIMIT_MS = 100;
/** Where the default partition is large, seeing that nothing of the day is in it takes long, and everybody waits. */
const MAKING_LIMIT_MS = 2_000;

/**
 * Gives a day tables of its own; nothing happens where it has them. What stands in the default partition of it goes there where
 * `moving` says so: nobody reads or writes runs meanwhile, and then everybody sees them where they are. Otherwise nobody writes: who
 * had found the default partition for a run of the day, and then waited for it, would be refused there.
 * @throws isNotNow where a lock cannot be had, or runs of the day stand in the default partition and are not to be moved
 */
export async function makeDay(
  db: Executor,
  { other }: History,
  day: Instant,
  moving: boolean,
): Promise<void> {
  const name = isoInstant(day).slice(0, 10).replaceAll('-', '');
  const range = `FOR VALUES FROM ('${isoInstant(day)}') TO ('${isoInstant(day + DAY_MS)}')`;
  const like = 'INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES';
  const move = (from: string, to: string) =>
    `WITH moved AS (DELETE FROM ${from} WHERE ${rangeOf({ from: day, to: day + DAY_MS })} RETURNING *) INSERT INTO ${to} SELECT * FROM moved;`;
  await alone(
    db,
    MAKING_LIMIT_MS,
    `IF to_regclass('runs_${name}') IS NOT NULL THEN RETURN; END IF;
    CREATE TABLE runs_${name} (LIKE runs ${like}) WITH (${STORAGE_OF_RUNS});
    CREATE TABLE attempts_${name} (LIKE attempts ${like});
    LOCK TABLE ONLY runs, ONLY attempts IN ${moving ? 'ACCESS' : 'SHARE ROW'} EXCLUSIVE MODE;
    LOCK TABLE ${other.runs}, ${other.attempts} IN ACCESS EXCLUSIVE MODE;
    ${moving ? move(other.runs, `runs_${name}`) + move(other.attempts, `attempts_${name}`) : ''}
    ALTER TABLE runs ATTACH PARTITION runs_${name} ${range};
    ALTER TABLE attempts ATTACH PARTITION attempts_${name} ${range};`,
  );
}

/** Gives all days of a period that have none tables of their own, whatever stands in the default partition of them. */
export async function makeDays(db: Executor, from: Instant, to: Instant): Promise<void> {
  const history = await listHistory(db);
  for (let day = dayOf(from); day < to; day += DAY_MS)
    if (!isCovered(history, day)) await makeDay(db, history, day, true);
}

export function isCovered({ days }: History, day: Instant): boolean {
  return days.some(({ from, to }) => (from ?? -Infinity) <= day && day < to);
}

/**
 * Does something to the tables of history, unless another instance does at this moment. As one message, commit and all: whoever
 * freezes after he has sent it holds no lock. What it asks under its locks goes by indexes, whatever the planner thinks of a table
 * that was full of open runs when it was last analyzed.
 */
export async function alone(db: Executor, limitMs: number, body: string): Promise<void> {
  await db.execute(
    sql.raw(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}; SET LOCAL statement_timeout = ${limitMs};
    SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
    DO $firelock$
    BEGIN
      IF NOT pg_try_advisory_xact_lock(hashtext('firelock history ' || current_schema())) THEN
        RAISE lock_not_available USING MESSAGE = 'another instance sees to history';
      END IF;
      ${body}
    END
    $firelock$`),
  );
}

/** Those of a day, as the ids of runs begin with their time. */
export function idsOf({ from, to }: Pick<HistoryDay, 'from' | 'to'>): { first: string; end: string } {
  return { first: firstIdOf(from ?? 0), end: firstIdOf(to) };
}

function firstIdOf(at: Instant): string {
  const time = at.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

/** Of the runs, or attempts, that stand in its tables. */
export function ofDay(day: Pick<HistoryDay, 'from' | 'to'>): SQL {
  return sql.raw(rangeOf(day));
}

/** The same in words, for what is sent as one message. */
export function rangeOf({ from, to }: Pick<HistoryDay, 'from' | 'to'>): string {
  const lower = from === null ? '' : `scheduled_for >= '${isoInstant(from)}' AND `;
  return `${lower}scheduled_for < '${isoInstant(to)}'`;
}
