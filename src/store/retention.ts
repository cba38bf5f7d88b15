import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { instants, uuids } from './arrays.ts';
import type { Executor, Transaction } from './executor.ts';
import { type HistoryDay, alone, idsOf, ofDay, rangeOf } from './history-days.ts';
import { OPEN_WORDS, isOpen } from './open-runs.ts';
import { type InstantText, rowsOf, scheduleIdOf, toInstant, toInstantOrNull } from './rows.ts';

/** A run on whose account a day stays. */
export interface HoldingRun {
  runId: string;
  scheduleId: string | null;
}

/** How many they are, and the first of them. */
export interface Holding {
  count: number;
  runs: HoldingRun[];
}

const MOST_NAMED = 5;

/** Runs of the day that have not ended. */
export function openRunsOf(db: Executor, day: HistoryDay): Promise<Holding> {
  return holding(
    db,
    sql`SELECT id, schedule_id FROM ${tableOf(day)} r WHERE ${ofDay(day)} AND ${isOpen(sql`r`)}`,
  );
}

/**
 * Open runs, wherever they stand, that have still to be told of one of the day: since they depend on it, or follow its end. What
 * follows an end is due at it: no later than the last end of the day, which is before `before`.
 */
export function runsWaitingForDay(db: Executor, day: HistoryDay, before: Instant): Promise<Holding> {
  const { first, end } = idsOf(day);
  return holding(
    db,
    sql`SELECT r.id, r.schedule_id FROM run_dependencies d JOIN runs r ON r.scheduled_for = d.scheduled_for AND r.id = d.run_id
    WHERE d.depends_on >= ${first}::uuid AND d.depends_on < ${end}::uuid AND r.status IN (${OPEN})
    UNION SELECT r.id, r.schedule_id FROM runs r
    WHERE ${isOpen(sql`r`)} AND r.scheduled_for < ${isoInstant(before)}::timestamptz
      AND r.parent_run_id >= ${first}::uuid AND r.parent_run_id < ${end}::uuid`,
  );
}

async function holding(db: Executor, runs: SQL): Promise<Holding> {
  const rows = await rowsOf<{ id: string; schedule_id: string; count: number }>(
    db,
    sql`WITH found AS MATERIALIZED (${runs})
    SELECT id, schedule_id, (SELECT count(*) FROM found)::int AS count FROM found ORDER BY id LIMIT ${MOST_NAMED}`,
  );
  const named = rows.map(({ id, schedule_id }) => ({ runId: id, scheduleId: scheduleIdOf(schedule_id) }));
  return { count: rows[0]?.count ?? 0, runs: named };
}

/** Reads all of it. `lastEnd` null: there are none. */
export async function runsOfDay(
  db: Executor,
  day: HistoryDay,
): Promise<{ runs: number; lastEnd: Instant | null }> {
  const [row] = await rowsOf<{ runs: number; last_end: InstantText | null }>(
    db,
    sql`SELECT count(*)::int AS runs, max(coalesce(finished_at, updated_at)) AS last_end FROM ${tableOf(day)} WHERE ${ofDay(day)}`,
  );
  return { runs: row?.runs ?? 0, lastEnd: toInstantOrNull(row?.last_end ?? null) };
}

/**
 * Deletes some of the keys and dependencies of a day, at both ends of these; answers how many, 0 when none are left that can go. Those of
 * runs that are open stay: one of the day may have been opened again since it was looked at, and have new dependents.
 */
export async function clearDay(db: Executor, day: HistoryDay, limit: number): Promise<number> {
  const { first, end } = idsOf(day);
  const ofThatDay = (column: SQL) => sql`${column} >= ${first}::uuid AND ${column} < ${end}::uuid`;
  const edges = (column: SQL) => sql`DELETE FROM run_dependencies WHERE (depends_on, run_id) IN (
        SELECT d.depends_on, d.run_id FROM run_dependencies d WHERE ${ofThatDay(column)}
          AND NOT ${isOpenByKey(sql`d.scheduled_for`, sql`d.run_id`)}
          AND NOT ${isOpenByKey(sql`d.depends_on_scheduled_for`, sql`d.depends_on`)} LIMIT ${limit}) RETURNING 1`;
  const [row] = await rowsOf<{ cleared: number }>(
    db,
    sql`WITH keys AS (
      DELETE FROM run_keys WHERE (key, scope) IN (
        SELECT k.key, k.scope FROM run_keys k WHERE ${ofThatDay(sql`k.run_id`)}
          AND NOT ${isOpenByKey(timeOf(sql`k.run_id`), sql`k.run_id`)} LIMIT ${limit}) RETURNING 1
    ), dependencies AS (
      ${edges(sql`d.run_id`)}
    ), dependents AS (
      ${edges(sql`d.depends_on`)}
    )
    SELECT (SELECT count(*) FROM keys)::int + (SELECT count(*) FROM dependencies)::int
      + (SELECT count(*) FROM dependents)::int AS cleared`,
  );
  return row?.cleared ?? 0;
}

/** By its key, for each: the planner would rather join with all that is open. */
function isOpenByKey(scheduledFor: SQL, id: SQL): SQL {
  return sql`EXISTS (SELECT FROM (SELECT r.status FROM runs r WHERE r.scheduled_for = ${scheduledFor} AND r.id = ${id} OFFSET 0) AS found
    WHERE found.status IN (${OPEN}))`;
}

/** The instant that the id of a run begins with. */
function timeOf(id: SQL): SQL {
  return sql`(timestamptz 'epoch' + ('x' || left(translate(${id}::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond')`;
}

const DROPPING_LIMIT_MS = 2_000;

/**
 * Drops a day: nothing that was due before its end gets a run any more. Nobody reads or writes runs meanwhile, so that whoever
 * records or opens runs has either done so before, and is seen, or finds the day gone. The tables of a day that has none of its own
 * stay: its rows are for `deleteRunsOf`.
 * @throws isNotNow where something of it is in use, or a lock cannot be had; isTableGone where somebody else has dropped it
 */
export async function dropDayIfUnused(
  db: Executor,
  day: HistoryDay,
  { before, other }: { before: Instant; other: Pick<HistoryDay, 'runs' | 'attempts'> },
): Promise<void> {
  const { first, end } = idsOf(day);
  const ids = (column: string) => `${column} >= '${first}' AND ${column} < '${end}'`;
  const open = `CASE WHEN status IN (${OPEN_WORDS}) THEN true END`;
  const refuseIfUsed = `IF EXISTS (SELECT FROM ${day.runs} WHERE ${open} AND ${rangeOf(day)})
      OR EXISTS (SELECT FROM runs WHERE ${open} AND scheduled_for < '${isoInstant(before)}' AND ${ids('parent_run_id')})
      OR EXISTS (SELECT FROM run_dependencies WHERE ${ids('depends_on')})
      OR EXISTS (SELECT FROM run_dependencies WHERE ${ids('run_id')})
      OR EXISTS (SELECT FROM run_keys WHERE ${ids('run_id')})
    THEN RAISE object_in_use USING MESSAGE = 'something of the day is in use again'; END IF;`;
  const tables = day.isInOther ? [] : [day.runs, day.attempts];
  // Asked before the locks as well: what it has to read is then known to be dead, and is not read again under them.
  await alone(
    db,
    DROPPING_LIMIT_MS,
    `${refuseIfUsed}
    LOCK TABLE ${['ONLY runs', 'ONLY attempts', other.runs, other.attempts, ...tables].join(', ')} IN ACCESS EXCLUSIVE MODE;
    ${refuseIfUsed}
    INSERT INTO history (dropped_before) VALUES ('${isoInstant(day.to)}')
    ON CONFLICT (one) DO UPDATE SET dropped_before = greatest(history.dropped_before, excluded.dropped_before);
    ${tables.length === 0 ? '' : `DROP TABLE ${tables.join(', ')};`}`,
  );
}

/**
 * Deletes some of the ended runs of a day that has been dropped and has no tables of its own, with their attempts; answers how many.
 * Who depends on them is read by a second statement: whoever makes a run depend on another locks that one first, so what was made
 * before these locks is seen, and what comes later finds no run to depend on.
 */
export async function deleteRunsOf(
  tx: Transaction,
  day: HistoryDay,
  { before, limit }: { before: Instant; limit: number },
): Promise<number> {
  const ended = await rowsOf<{ scheduled_for: InstantText; id: string }>(
    tx,
    sql`SELECT scheduled_for, id FROM ${tableOf(day)}
    WHERE ${ofDay(day)} AND status NOT IN (${OPEN}) AND coalesce(finished_at, updated_at) < ${isoInstant(before)}::timestamptz
    ORDER BY scheduled_for, id LIMIT ${limit} FOR UPDATE SKIP LOCKED`,
  );
  if (ended.length === 0) return 0;
  const [row] = await rowsOf<{ deleted: number }>(
    tx,
    sql`WITH unneeded AS MATERIALIZED (
      SELECT o.scheduled_for, o.id
      FROM unnest(${instants(ended.map((run) => toInstant(run.scheduled_for)))}, ${uuids(ended.map(({ id }) => id))})
        AS o(scheduled_for, id)
      WHERE NOT EXISTS (SELECT FROM run_dependencies d WHERE d.depends_on = o.id)
    ), attempts_deleted AS (
      DELETE FROM ${sql.raw(day.attempts)} a USING unneeded u WHERE a.scheduled_for = u.scheduled_for AND a.run_id = u.id
    ), deleted AS (
      DELETE FROM ${tableOf(day)} r USING unneeded u WHERE r.scheduled_for = u.scheduled_for AND r.id = u.id RETURNING 1
    )
    SELECT count(*)::int AS deleted FROM deleted`,
  );
  return row?.deleted ?? 0;
}

function tableOf({ runs }: HistoryDay): SQL {
  return sql.raw(runs);
}

const OPEN = sql.raw(OPEN_WORDS);
