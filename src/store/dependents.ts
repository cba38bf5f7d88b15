import { sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import { scheduledForOf } from '../core/run.ts';
import { instants, texts, uuids } from './arrays.ts';
import { isLockedByOthers } from './errors.ts';
import { type Transaction, sendNow } from './executor.ts';
import {
  AFTERMATH,
  type Aftermath,
  type AftermathRow,
  ENDED,
  type EndedDependency,
  NO_AFTERMATH,
  aftermathOf,
  followEnds,
  together,
} from './followers.ts';
import { isPull } from './lanes.ts';
import { lockLimit } from './lock-limit.ts';
import { runsByKey } from './by-key.ts';
import { sinceDayOf } from './open-runs.ts';
import { rowsOf } from './rows.ts';

/**
 * What ends of runs brought about, those that others depend on included: their dependents are released here, before the commit of
 * the ends. `row` is of the statement that ended them, earlier in this transaction.
 */
export async function aftermathIn(
  tx: Transaction,
  row: AftermathRow | undefined,
  judged: readonly string[] = [],
): Promise<Aftermath> {
  const aftermath = aftermathOf(row, judged);
  if (!row?.depended_on) return aftermath;
  const ends = JSON.parse(row.depended_on) as EndedDependency[];
  return together([aftermath, await releaseDependents(tx, ends)]);
}

/**
 * Counts these ends on the rows of those that wait for them. Others may be at it, for these or for other ends of theirs, and are waited
 * for: a moment, unless one of them is frozen in the middle. Then the ends are committed without those rows, and they are counted later
 * (`toRelease`).
 */
export async function releaseDependents(
  tx: Transaction,
  ends: readonly EndedDependency[],
): Promise<Aftermath> {
  if (ends.length === 0) return NO_AFTERMATH;
  try {
    // In a savepoint, to which it goes back.
    const aftermath = await tx.transaction((inner) => countEnds(inner, ends, { wait: true }));
    // Not waited for: what comes next finds out as well where this cannot be done.
    void sendNow(tx, 'SET LOCAL lock_timeout TO DEFAULT').catch(() => undefined);
    return aftermath;
  } catch (error) {
    if (!isLockedByOthers(error)) throw error;
    return countEnds(tx, ends, { wait: false });
  }
}

/**
 * Each dependency once, however often it ends, since its edge is marked in the same statement, under the lock of the dependent's row.
 * The last one lets its dependent go. Never by looking at the other dependencies: of two that end at the same moment, each sees the
 * other as still open. The guard of the edge is a CASE so that the planner cannot take it for a filter: where statistics call open
 * edges rare, it would read all there are, once for each end.
 *
 * A statement of its own, after the one that ended them: whoever makes a run depend on another locks that one first
 * (lockDependencies), so what was made while the end waited for that lock is seen here, and what comes later sees the end.
 */
async function countEnds(
  tx: Transaction,
  ends: readonly EndedDependency[],
  { wait }: { wait: boolean },
): Promise<Aftermath> {
  const [row] = await rowsOf<{
    found: number;
    free: number;
    released: number;
    to_pull: boolean;
    to_fail: boolean;
  }>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now${wait ? sql`, ${HELD_LIMIT}` : sql``}),
    ends AS (SELECT * FROM unnest(${uuids(ends.map(({ id }) => id))}, ${texts(ends.map(({ status }) => status))}) AS e(id, status)),
    open AS MATERIALIZED (
      SELECT d.*, ends.status FROM ends, LATERAL (
        SELECT depends_on, scheduled_for, run_id FROM run_dependencies
        WHERE depends_on = ends.id AND CASE WHEN counted_at IS NULL THEN true END LIMIT ${MOST_RELEASED}) AS d
      LIMIT ${MOST_RELEASED}
    ), locked AS MATERIALIZED (
      SELECT r.id FROM clock, (SELECT DISTINCT scheduled_for, run_id FROM open) AS d
      JOIN runs r ON r.scheduled_for = d.scheduled_for AND r.id = d.run_id
      ORDER BY r.scheduled_for, r.id FOR NO KEY UPDATE OF r ${wait ? sql`` : sql`SKIP LOCKED`}
    ), free AS MATERIALIZED (
      SELECT * FROM open WHERE run_id IN (SELECT id FROM locked)
        OR NOT EXISTS (SELECT FROM runs r WHERE r.scheduled_for = open.scheduled_for AND r.id = open.run_id)
    ), counted AS (
      UPDATE run_dependencies d SET counted_at = clock.now FROM free, clock
      WHERE d.depends_on = free.depends_on AND d.run_id = free.run_id AND CASE WHEN d.counted_at IS NULL THEN true END
      RETURNING d.scheduled_for, d.run_id, d.depends_on AS id, free.status
    ), dependents AS MATERIALIZED (
      SELECT scheduled_for, run_id, count(*)::int AS ended, min(id::text) FILTER (WHERE status <> 'succeeded')::uuid AS failed
      FROM counted GROUP BY scheduled_for, run_id
    ), released AS (
      UPDATE runs r SET open_dependencies = r.open_dependencies - l.ended, updated_at = clock.now,
        failed_dependency = CASE WHEN r.status <> 'waiting' THEN r.failed_dependency
          WHEN r.on_dependency_failure = 'fail' THEN coalesce(r.failed_dependency, l.failed) END,
        status = CASE WHEN ${goesOn} THEN 'pending' ELSE r.status END,
        due_at = CASE WHEN ${goesOn} THEN greatest(r.due_at, clock.now) ELSE r.due_at END
      FROM dependents l, clock WHERE r.scheduled_for = l.scheduled_for AND r.id = l.run_id
      RETURNING r.status, r.lane, r.claimed_by, r.failed_dependency
    )
    SELECT (SELECT count(*) FROM open)::int AS found, (SELECT count(*) FROM free)::int AS free,
      count(*) FILTER (WHERE status = 'pending' AND claimed_by IS NULL)::int AS released,
      coalesce(bool_or(status = 'pending' AND ${isPull(sql`lane`)}), false) AS to_pull,
      coalesce(bool_or(status = 'waiting' AND failed_dependency IS NOT NULL), false) AS to_fail
    FROM released`,
  );
  return {
    ...NO_AFTERMATH,
    toClaim: row?.released ?? 0,
    toPull: row?.to_pull ?? false,
    toFail: row?.to_fail ?? false,
    toRelease: row && (row.found === MOST_RELEASED || row.free < row.found) ? ends : [],
  };
}

/**
 * For a dependent that somebody else counts an end on. Who is well may take long on a busy machine, and the last end is to let a dependent
 * go in its own commit; so only who is frozen is not waited for.
 */
const HELD_LIMIT = lockLimit(2_000);

/** In one transaction, which others wait for; what is left of more is released in further ones. */
const MOST_RELEASED = 20_000;

/** Of a dependent `r` and the ends `l` counted on it now. */
const goesOn = sql`r.status = 'waiting' AND r.open_dependencies = l.ended
  AND (r.on_dependency_failure = 'run' OR r.failed_dependency IS NULL AND l.failed IS NULL)`;

/**
 * The same for ends that were committed before: only of what has still ended, and as it has ended now. Its rows are locked first:
 * one that was opened again since has new dependents, who wait for what it does now.
 */
export async function releaseDependentsIfStillEnded(
  tx: Transaction,
  ids: readonly string[],
): Promise<Aftermath> {
  if (ids.length === 0) return NO_AFTERMATH;
  const ends = await rowsOf<EndedDependency>(
    tx,
    sql`WITH locked AS MATERIALIZED (
      SELECT r.id, r.status FROM unnest(${instants(ids.map(scheduledForOf))}, ${uuids(ids)}) AS i(scheduled_for, id)
      JOIN runs r ON ${runsByKey(sql`r`, sql`i`, ids.map(scheduledForOf))}
      ORDER BY r.scheduled_for, r.id FOR NO KEY UPDATE OF r
    )
    SELECT id, status FROM locked WHERE status NOT IN ('waiting', 'pending', 'running')`,
  );
  return releaseDependents(tx, ends);
}

/** How many ended so, and what that brought about: others may depend on them in turn. */
export interface FailedDependents {
  failed: number;
  /** The first of them. */
  runIds: string[];
  aftermath: Aftermath;
}

const MOST_NAMED = 10;

/** Ends runs that wait and cannot run any more, since one they need did not succeed. Rows that others hold are passed over. */
export async function failDependents(
  tx: Transaction,
  openSince: Instant,
  limit: number,
): Promise<FailedDependents> {
  const [row] = await rowsOf<{ failed: number; named: string | null } & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    failing AS MATERIALIZED (
      SELECT scheduled_for, id, failed_dependency FROM runs
      WHERE status = 'waiting' AND open_dependencies IS NOT NULL AND failed_dependency IS NOT NULL
        AND ${sinceDayOf(sql`scheduled_for`, openSince)}
      ORDER BY scheduled_for, id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), changed AS (
      UPDATE runs r SET status = 'failed', finished_at = clock.now, updated_at = clock.now,
        error = jsonb_build_object('kind', 'dependency', 'message', 'run ' || f.failed_dependency
          || ', which it depends on, ended as ' || coalesce((SELECT d.status FROM run_dependencies e
            JOIN runs d ON d.scheduled_for = e.depends_on_scheduled_for AND d.id = e.depends_on
            WHERE e.depends_on = f.failed_dependency AND e.run_id = f.id), 'unknown'))
      FROM failing f, clock WHERE r.scheduled_for = f.scheduled_for AND r.id = f.id
        AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
      RETURNING ${ENDED}
    ), ${followEnds(sql`changed`)}
    SELECT (SELECT count(*) FROM changed)::int AS failed,
      (SELECT string_agg(id::text, ',') FROM (SELECT id FROM changed LIMIT ${MOST_NAMED}) AS named) AS named, ${AFTERMATH}
    FROM aftermath`,
  );
  return {
    failed: row?.failed ?? 0,
    runIds: row?.named?.split(',') ?? [],
    aftermath: await aftermathIn(tx, row),
  };
}

/** Where the next look at open dependencies goes on. */
export interface EdgeCursor {
  dependsOn: string;
  runId: string;
}

/**
 * Releases those that wait for a run whose end released nobody: by a version of firelock that knew nothing of dependents, or by a
 * foreign hand. A pass looks at some of all open dependencies, since in a healthy installation it finds nothing.
 */
export async function releaseOverlooked(
  tx: Transaction,
  after: EdgeCursor,
  limit: number,
): Promise<{ released: number; next: EdgeCursor | null; aftermath: Aftermath }> {
  const rows = await rowsOf<{ depends_on: string; run_id: string; has_ended: boolean }>(
    tx,
    sql`SELECT d.depends_on, d.run_id, r.id IS NOT NULL AS has_ended FROM (
      SELECT depends_on, depends_on_scheduled_for, run_id FROM run_dependencies
      WHERE counted_at IS NULL AND (depends_on, run_id) > (${after.dependsOn}::uuid, ${after.runId}::uuid)
      ORDER BY depends_on, run_id LIMIT ${limit}) AS d
    LEFT JOIN runs r ON r.scheduled_for = d.depends_on_scheduled_for AND r.id = d.depends_on
      AND r.status NOT IN ('waiting', 'pending', 'running')
    ORDER BY d.depends_on, d.run_id`,
  );
  const ended = new Set(rows.flatMap(({ depends_on, has_ended }) => (has_ended ? [depends_on] : [])));
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    released: ended.size,
    next: last ? { dependsOn: last.depends_on, runId: last.run_id } : null,
    aftermath: await releaseDependentsIfStillEnded(tx, [...ended]),
  };
}
