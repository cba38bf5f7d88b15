import { type SQL, sql } from 'drizzle-orm';
import type { StatusStep } from '../../core/runs/transitions.ts';
import { laneOfQueue } from '../../core/runs/run-lane.ts';
import { OBSERVED_LANE } from '../../core/schedules/schedule.ts';

/** In a row of these columns, written or about to be. */
interface ReadyColumns {
  dueAt: SQL;
  limitId: SQL;
  /** Left out: the run is recorded now, and has no place yet. */
  admittedAt?: SQL;
  /** Left out: it is to be sent. */
  observed?: SQL;
}

/**
 * The value of `ready`, for all statements that write it: without a limit a run may be claimed once it is due, with a limit while it
 * has a place of it. The constraint `runs_place` refuses anything else.
 */
export function isReady({ dueAt, limitId, admittedAt, observed }: ReadyColumns, now: SQL): SQL {
  const isAdmitted = admittedAt ? sql`${admittedAt} IS NOT NULL` : sql`false`;
  const isSent = observed ? sql`WHEN ${observed} THEN false ` : sql``;
  return sql`CASE ${isSent}WHEN ${limitId} IS NULL THEN ${dueAt} <= ${now} ELSE ${isAdmitted} END`;
}

/**
 * The status that a statement writes, as SQL. By its arguments the statement names its row of STATUS_STEPS: what it changes, into what,
 * and in which function it stands. test/core/runs/status-steps.test.ts finds statements that do not.
 */
export function stepTo(...[, to]: StatusStep): string {
  return `'${to}'`;
}

export function isPull(lane: SQL): SQL {
  return sql`starts_with(${lane}, ${laneOfQueue('')})`;
}

/** Lanes of queues that a worker asked lately: a worker may wait for a minute, and its request is written every few seconds. */
export const ATTENDED_LANES = sql`attended AS MATERIALIZED (
      SELECT coalesce(array_agg(DISTINCT 'pull ' || queue), '{}') AS lanes FROM queue_workers
      WHERE seen_at > (SELECT clock_timestamp() - interval '90 seconds'))`;

/** For the lane of a queue, beside ATTENDED_LANES: no worker asks for its runs. */
export function isUnattended(lane: SQL): SQL {
  return sql`(starts_with(${lane}, 'pull ') AND ${lane} <> ALL ((SELECT lanes FROM attended)::text[]))`;
}

/** Of a row with the columns of its schedule: whether its run for that moment is observed. `isObservedAt` says the same. */
export function isObserved(row: SQL, scheduledFor: SQL): SQL {
  return sql`(${row}.report_seconds IS NOT NULL AND coalesce(${scheduledFor} < ${row}.observe_until, true))`;
}

/** What such a run takes from its schedule instead, in a row `f` that has the answer as `observed`: `observedRun` in SQL. */
export const AS_OBSERVED = {
  lane: sql.raw(`CASE WHEN f.observed THEN '${OBSERVED_LANE}' ELSE f.lane END`),
  limitId: sql`CASE WHEN NOT f.observed THEN f.limit_id END`,
  overlap: sql`CASE WHEN f.observed THEN 'allow' ELSE f.overlap END`,
  expiresAfter: sql`CASE WHEN NOT f.observed THEN f.expires_after_seconds END`,
};

/** What only observed runs have. */
export const OBSERVED_COLUMNS = sql`observed, expires_at, lease_seconds`;

/** Their values, from a row `f` with its `due_at`. */
export const OBSERVED_VALUES = sql`f.observed, CASE WHEN f.observed THEN f.due_at + make_interval(secs => f.report_seconds) END,
        CASE WHEN f.observed THEN f.report_seconds END`;
