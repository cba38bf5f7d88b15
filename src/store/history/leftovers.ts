import { type SQL, sql } from 'drizzle-orm';
import { ints, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { type Instant, DAY_MS, isoInstant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';

/** What remains when a day of history is dropped unread: keys, dependencies and tags of its runs, and batches. */

/** Ids of runs, up to `before`. */
export interface SweptPage {
  after: string;
  before: string;
  limit: number;
}

export interface Sweep {
  /** Where the next page begins; null: this was the last one. */
  next: string | null;
  deleted: number;
}

interface Swept {
  /** The column `run_id` of what is kept beside runs, each once, where this condition on it holds. */
  runIds: (within: SQL) => SQL;
  /** What is deleted first, of these runs: if nobody comes to the rest, the rows that lead to it are still there. */
  before?: (gone: readonly string[]) => SQL;
  tables: readonly string[];
}

/**
 * Deletes what is kept of runs that have left history: a page of it, in the order of run ids. Nothing depends on it: a key without a run is
 * free, whether its row is there or not.
 */
function sweeperOf({ runIds, before: first, tables }: Swept) {
  return async (db: Executor, { before, after, limit }: SweptPage): Promise<Sweep> => {
    const within = sql`run_id > ${after}::uuid AND run_id < ${before}::uuid`;
    const page = await rowsOf<{ run_id: string; is_gone: boolean }>(db)(sql`-- sweeperOf
      SELECT k.run_id, NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id) AS is_gone FROM (
        ${runIds(within)} ORDER BY run_id LIMIT ${limit}) AS k`);
    const gone = page.filter(({ is_gone }) => is_gone).map(({ run_id }) => run_id);
    if (gone.length > 0) {
      if (first)
        await db.execute(sql`-- sweeperOf
        ${first(gone)}`);
      for (const table of tables)
        await db.execute(sql`-- sweeperOf
          DELETE FROM ${sql.identifier(table)} k WHERE k.run_id = ANY (${uuids(gone)})
          AND NOT EXISTS (SELECT FROM all_runs r WHERE r.id = k.run_id)`);
    }
    return { next: page.length === limit ? (page.at(-1)?.run_id ?? null) : null, deleted: gone.length };
  };
}

/** Each deletes a page of what is kept beside a run, once its run is gone. */
export const SWEEPS = [
  sweeperOf({
    runIds: (within) => sql`SELECT run_id FROM run_keys WHERE ${within}`,
    tables: ['run_keys'],
  }),
  sweeperOf({
    runIds: (within) => sql`SELECT DISTINCT run_id FROM run_dependencies WHERE ${within}`,
    tables: ['run_dependencies'],
  }),
  // What callers called runs; and batches with the last of their runs.
  sweeperOf({
    runIds: (within) => sql`SELECT run_id FROM run_tags WHERE ${within}`,
    before: (gone) => sql`
      DELETE FROM batches b WHERE b.id IN (SELECT batch_id FROM run_tags WHERE run_id = ANY (${uuids(gone)}))
      AND NOT EXISTS (SELECT FROM run_tags t WHERE t.batch_id = b.id AND EXISTS (SELECT FROM all_runs r WHERE r.id = t.run_id))`,
    tables: ['run_tags'],
  }),
];

/**
 * Logs that outlive their day. The logs of the runs that were due on a day are dropped with it, unread. A few of these runs may be kept
 * longer: they ended days later, or are open. Their ids tell which they are, so that only these are looked for, and their logs moved to
 * where those are that were written days later.
 */

/** Moves the logs of kept runs out of a day that is to be dropped; answers of how many runs, at most `limit`. */
export async function moveKeptLogs(db: Executor, day: Instant, limit: number): Promise<number> {
  const of = sql`l.day = ${isoInstant(day)}::timestamptz`;
  const moved = await rowsOf(db)(sql`-- moveKeptLogs
    WITH kept AS MATERIALIZED (
      SELECT r.id FROM all_runs r
      WHERE r.id >= ${firstRunIdAt(day)}::uuid AND r.id < ${firstRunIdAt(day + DAY_MS)}::uuid
        AND EXISTS (SELECT FROM run_logs l WHERE ${of} AND l.run_id = r.id)
      ORDER BY r.id LIMIT ${limit}
    ), moved AS (
      UPDATE run_logs l SET day = 'infinity' FROM kept WHERE ${of} AND l.run_id = kept.id
    )
    SELECT 1 FROM kept`);
  return moved.length;
}

/** Deletes such logs once their run has left history. */
export const sweepLogs = sweeperOf({
  runIds: (within) => sql`SELECT DISTINCT run_id FROM (
    SELECT run_id FROM run_logs_late WHERE ${within} UNION ALL SELECT run_id FROM run_logs_other WHERE ${within}) AS logs`,
  tables: ['run_logs_late', 'run_logs_other'],
});

/** All definitions of one uid, as their index has them. */
export interface DefinitionPosition {
  scheduleId: string;
  uid: string;
  /** No schedule has it: it belongs to a deleted one, or to one-off runs. */
  isOrphan: boolean;
}

/** The next of all; one with several versions may come several times, but on one page only. */
export async function listDefinitions(
  db: Executor,
  { after, limit }: { after: DefinitionPosition | null; limit: number },
): Promise<DefinitionPosition[]> {
  const further = after ? sql`WHERE (schedule_id, schedule_uid) > (${after.scheduleId}, ${after.uid}::uuid)` : sql``;
  return recordsOf<DefinitionPosition>(db)(sql`-- listDefinitions
    WITH page AS MATERIALIZED (
      SELECT schedule_id, schedule_uid FROM schedule_versions ${further}
      ORDER BY schedule_id, schedule_uid LIMIT ${limit}
    )
    SELECT p.schedule_id, p.schedule_uid AS uid, s.uid IS NULL AS is_orphan
    FROM page p LEFT JOIN schedules s ON s.uid = p.schedule_uid ORDER BY p.schedule_id, p.schedule_uid`);
}

/**
 * Deletes the definitions of these uids if the last of them is older than a moment, no schedule has it, no run uses it, and no notifier
 * has it as its present one. Answers how many it deleted.
 *
 * This is safe beside a transaction that records one-off runs:
 * 1. That transaction refreshes `at` of a definition that is older than an hour. A younger one stays younger than `before` for days.
 * 2. It inserts a definition that is missing, also one that was deleted while it waited for the row.
 * 3. The delete passes over locked rows, and checks `at` again under the lock. A run that was added after the snapshot has made `at`
 *    young, so it does no harm that the delete does not see this run.
 *
 * OFFSET 0 keeps the planner from joining with all of history: each uid is looked up in the index of each day.
 */
export async function dropUnusedDefinitionsBefore(
  db: Executor,
  before: Instant,
  uids: readonly string[],
): Promise<number> {
  const old = sql`< ${isoInstant(before)}::timestamptz`;
  const rows = await rowsOf(db)(sql`-- dropUnusedDefinitionsBefore
    WITH unused AS MATERIALIZED (
      SELECT v.schedule_uid, v.version FROM schedule_versions v
      WHERE v.schedule_uid = ANY (${uuids(uids)}) AND v.at ${old}
        AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = v.schedule_uid)
        AND NOT EXISTS (SELECT FROM notifiers n WHERE n.uid = v.schedule_uid AND n.version = v.version)
        AND NOT EXISTS (SELECT FROM schedule_versions w WHERE w.schedule_uid = v.schedule_uid AND NOT w.at ${old})
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger IN (${PLANNED}) OFFSET 0)
        AND NOT EXISTS (SELECT FROM runs r WHERE r.schedule_uid = v.schedule_uid AND r.trigger NOT IN (${PLANNED}) OFFSET 0)
        AND NOT EXISTS (SELECT FROM history r WHERE r.schedule_uid = v.schedule_uid OFFSET 0)
      ORDER BY v.schedule_uid, v.version FOR UPDATE OF v SKIP LOCKED
    )
    DELETE FROM schedule_versions v USING unused u
    WHERE v.schedule_uid = u.schedule_uid AND v.version = u.version RETURNING v.version`);
  return rows.length;
}

/** Runs of replaced versions that a schedule may have; if it has more, it keeps all versions for now. */
const MAX_RUNS = 1_000;
/** A version was in force until the next one: none of its runs was due later than that, whatever the clocks of instances say. */
const SLACK_MS = 3_600_000;

/**
 * Deletes versions of existing schedules that were replaced before a moment and that no run names, at most `limit` of each schedule; so
 * what was in force at that moment or later stays, and so does the first version, which says when the schedule was created. Answers how
 * many it deleted.
 *
 * A run that is recorded meanwhile names the newest version, or one whose row its transaction has locked (`keepVersions`): such rows are
 * passed over, and what was committed before they are locked here the second statement sees. One that is opened again stands in `runs` or
 * in `history`, whatever that sees.
 */
export async function dropReplacedDefinitionsBefore(
  tx: Transaction,
  before: Instant,
  uids: readonly string[],
  limit: number,
): Promise<number> {
  const dueBefore = before + SLACK_MS;
  const replaced = await rowsOf<{ uid: string; version: number }>(tx)(sql`-- dropReplacedDefinitionsBefore
    SELECT v.schedule_uid AS uid, v.version FROM schedule_versions v JOIN (
      SELECT s.uid, v.version FROM schedules s CROSS JOIN LATERAL (
        SELECT version, lead(at) OVER (ORDER BY version) AS until FROM (
          SELECT version, at FROM schedule_versions WHERE schedule_uid = s.uid AND version > 1 AND version <= s.version
          ORDER BY version LIMIT ${limit}::int + 1) AS first) AS v
      WHERE s.uid = ANY (${uuids(uids)}) AND v.until < ${isoInstant(before)}::timestamptz) AS r
      ON r.uid = v.schedule_uid AND r.version = v.version
    ORDER BY v.schedule_uid, v.version FOR UPDATE OF v SKIP LOCKED`);
  if (replaced.length === 0) return 0;
  const rows = await rowsOf(tx)(sql`-- dropReplacedDefinitionsBefore
    WITH replaced AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(replaced.map(({ uid }) => uid))}, ${ints(replaced.map(({ version }) => version))}) AS r(uid, version)
    ), named AS MATERIALIZED (
      SELECT r.uid, coalesce(array_agg(n.version) FILTER (WHERE n.version IS NOT NULL), '{}') AS versions
      FROM (SELECT DISTINCT uid FROM replaced) AS r LEFT JOIN LATERAL (
        (SELECT schedule_version AS version FROM runs WHERE schedule_uid = r.uid AND trigger IN (${PLANNED})
          AND scheduled_for < ${isoInstant(dueBefore)}::timestamptz LIMIT ${MAX_RUNS})
        UNION ALL
        (SELECT schedule_version FROM runs WHERE schedule_uid = r.uid AND trigger NOT IN (${PLANNED}) LIMIT ${MAX_RUNS})
        UNION ALL
        (SELECT schedule_version FROM history WHERE schedule_uid = r.uid AND id < ${firstRunIdAt(dueBefore)}::uuid LIMIT ${MAX_RUNS})
      ) AS n ON true GROUP BY r.uid HAVING count(n.version) < ${MAX_RUNS}
    )
    DELETE FROM schedule_versions v USING replaced r JOIN named USING (uid)
    WHERE v.schedule_uid = r.uid AND v.version = r.version AND r.version <> ALL (named.versions) RETURNING v.version`);
  return rows.length;
}

/** As the indexes on them say it. */
const PLANNED = sql`'schedule', 'catchUp', 'backfill'`;
