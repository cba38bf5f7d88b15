import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { instants, uuids } from './arrays.ts';
import type { Executor, Transaction } from './executor.ts';
import { ONE_OFF_KEYS } from './one-off-runs.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';

/** A run's primary key: history is walked in its order, which is that of time. */
export interface RunPosition {
  scheduledFor: Instant;
  id: string;
}

/** The next runs that were due before a moment; ended or not. */
export async function listRunsBefore(
  db: Executor,
  before: Instant,
  { after, limit }: { after: RunPosition | null; limit: number },
): Promise<RunPosition[]> {
  const further = after
    ? sql`AND (scheduled_for, id) > (${isoInstant(after.scheduledFor)}::timestamptz, ${after.id}::uuid)`
    : sql``;
  const rows = await rowsOf<{ scheduled_for: InstantText; id: string }>(
    db,
    sql`SELECT scheduled_for, id FROM runs WHERE scheduled_for < ${isoInstant(before)}::timestamptz ${further}
    ORDER BY scheduled_for, id LIMIT ${limit}`,
  );
  return rows.map((row) => ({ scheduledFor: toInstant(row.scheduled_for), id: row.id }));
}

/**
 * Deletes those of the runs that ended before a moment and whose end nobody has still to be told of, with all that belongs to
 * them; answers how many. What somebody has locked is left for another time.
 *
 * Who depends on them is read by a second statement: whoever makes a run depend on another locks that one first, so what was made
 * before these locks is seen, and what comes later finds no run to depend on. What follows an end is found by its time, which is
 * that of the end. Keys go in the same commit, so that a key either answers with its run or is free.
 */
export async function dropEndedRunsBefore(
  tx: Transaction,
  before: Instant,
  runs: readonly RunPosition[],
): Promise<number> {
  const times = runs.map((run) => run.scheduledFor);
  const [first, last] = [Math.min(...times), Math.max(...times)].map(isoInstant);
  /** They are neighbours: said so, their part of a table is read, not all of it. */
  const within = (table: SQL) =>
    sql`${table}.scheduled_for BETWEEN ${first}::timestamptz AND ${last}::timestamptz`;
  const ended = await rowsOf<{ scheduled_for: InstantText; id: string; finished_at: InstantText }>(
    tx,
    sql`SELECT r.scheduled_for, r.id, coalesce(r.finished_at, r.updated_at) AS finished_at
    FROM unnest(${instants(times)}, ${uuids(runs.map((run) => run.id))})
      AS o(scheduled_for, id)
    JOIN runs r ON r.scheduled_for = o.scheduled_for AND r.id = o.id AND ${within(sql`r`)}
    WHERE r.status NOT IN (${OPEN}) AND coalesce(r.finished_at, r.updated_at) < ${isoInstant(before)}::timestamptz
    ORDER BY r.scheduled_for, r.id FOR UPDATE OF r SKIP LOCKED`,
  );
  if (ended.length === 0) return 0;
  const [row] = await rowsOf<{ dropped: number }>(
    tx,
    sql`WITH unneeded AS MATERIALIZED (
      SELECT o.scheduled_for, o.id
      FROM unnest(${instants(ended.map((run) => toInstant(run.scheduled_for)))}, ${uuids(ended.map((run) => run.id))},
        ${instants(ended.map((run) => toInstant(run.finished_at)))}) AS o(scheduled_for, id, finished_at)
      WHERE NOT EXISTS (
        SELECT FROM run_dependencies d JOIN runs r ON r.scheduled_for = d.scheduled_for AND r.id = d.run_id
        WHERE d.depends_on = o.id AND r.status IN (${OPEN})
      ) AND NOT EXISTS (
        SELECT FROM runs r WHERE r.scheduled_for = o.finished_at AND r.parent_run_id = o.id AND r.status IN (${OPEN})
      )
    ), dropped AS (
      DELETE FROM runs r USING unneeded u
      WHERE r.scheduled_for = u.scheduled_for AND r.id = u.id AND ${within(sql`r`)}
      RETURNING r.id, r.key, CASE WHEN r.trigger = 'api' THEN ${ONE_OFF_KEYS}::uuid ELSE r.schedule_uid END AS scope
    ), attempts_dropped AS (
      DELETE FROM attempts a USING unneeded u
      WHERE a.scheduled_for = u.scheduled_for AND a.run_id = u.id AND ${within(sql`a`)}
    ), keys_dropped AS (
      DELETE FROM run_keys k USING dropped d WHERE k.key = d.key AND k.scope = d.scope AND k.run_id = d.id
    ), dependencies_dropped AS (
      DELETE FROM run_dependencies d USING unneeded u WHERE d.run_id = u.id
    ), dependents_dropped AS (
      DELETE FROM run_dependencies d USING unneeded u WHERE d.depends_on = u.id
    )
    SELECT count(*)::int AS dropped FROM dropped`,
  );
  return row?.dropped ?? 0;
}

/** All definitions of one uid, as their index has them. */
export interface DefinitionPosition {
  scheduleId: string;
  uid: string;
  /** Of no schedule there is: of a deleted one, or of one-off runs. */
  isOrphan: boolean;
}

/** The next of all; one with several versions may come several times, but on one page only. */
export async function listDefinitions(
  db: Executor,
  { after, limit }: { after: DefinitionPosition | null; limit: number },
): Promise<DefinitionPosition[]> {
  const further = after
    ? sql`WHERE (schedule_id, schedule_uid) > (${after.scheduleId}, ${after.uid}::uuid)`
    : sql``;
  const rows = await rowsOf<{ schedule_id: string; schedule_uid: string; is_orphan: boolean }>(
    db,
    sql`WITH page AS MATERIALIZED (
      SELECT schedule_id, schedule_uid FROM schedule_versions ${further}
      ORDER BY schedule_id, schedule_uid LIMIT ${limit}
    )
    SELECT p.schedule_id, p.schedule_uid, s.uid IS NULL AS is_orphan
    FROM page p LEFT JOIN schedules s ON s.uid = p.schedule_uid ORDER BY p.schedule_id, p.schedule_uid`,
  );
  return rows.map((row) => ({
    scheduleId: row.schedule_id,
    uid: row.schedule_uid,
    isOrphan: row.is_orphan,
  }));
}

/**
 * Deletes the definitions of these uids where the last of them is older than a moment, no schedule has it and no run uses it; answers
 * how many.
 *
 * Beside somebody who records one-off runs this is safe since that one first refreshes `at` of a definition that is older than an
 * hour, and then inserts it where it is missing, in the transaction of its runs. What it refreshed is locked, or is young when its
 * lock is had: the condition on `at` is judged again then. What it found younger than an hour stays so for days, by this moment. And
 * what is deleted before it came is missing, or is waited for and missing then, and so it is inserted. That the runs are looked for
 * in a snapshot of before the locks does no harm: whoever added one since has also made `at` young.
 */
export async function dropUnusedDefinitionsBefore(
  db: Executor,
  before: Instant,
  uids: readonly string[],
): Promise<number> {
  const old = sql`< ${isoInstant(before)}::timestamptz`;
  const rows = await rowsOf(
    db,
    sql`WITH unused AS MATERIALIZED (
      SELECT v.schedule_uid, v.version FROM schedule_versions v
      WHERE v.schedule_uid = ANY (${uuids(uids)}) AND v.at ${old}
        AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = v.schedule_uid)
        AND NOT EXISTS (SELECT FROM schedule_versions w WHERE w.schedule_uid = v.schedule_uid AND NOT w.at ${old})
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger IN (${PLANNED}))
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger NOT IN (${PLANNED}))
      ORDER BY v.schedule_uid, v.version FOR UPDATE OF v SKIP LOCKED
    )
    DELETE FROM schedule_versions v USING unused u
    WHERE v.schedule_uid = u.schedule_uid AND v.version = u.version RETURNING v.version`,
  );
  return rows.length;
}

/** As the indexes on them say it. */
const OPEN = sql`'waiting', 'pending', 'running'`;
const PLANNED = sql`'schedule', 'catchUp', 'backfill'`;
