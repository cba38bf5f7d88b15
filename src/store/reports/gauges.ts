import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind, TroubledNotifiers } from '../../core/alerts/alert.ts';
import type { Executor } from '../../postgres/executor.ts';
import { noPlanning } from '../instances/installation-row.ts';
import { lives } from '../instances/instances.ts';
import { READY_LANES } from '../runs/claims/claims.ts';
import { ENDS_SOON, isOver, LATE_UIDS, isApart } from '../schedules/search/schedule-conditions.ts';
import { FAILING_ENDS } from '../../core/run-end.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { ScheduleStatus } from '../../core/schedules/schedule.ts';
import { isAhead } from '../schedules/cursors-ahead.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';

/**
 * The state of the work. The cost depends on the number of lanes, claims, places of limits, instances and overdue schedules, not on
 * the number of waiting runs.
 */
export interface WorkGauges {
  /**
   * How long the oldest pending run has been due, claimed or not; 0: there is none. A run with a limit counts from the moment
   * at which it has a place.
   */
  oldestPendingSeconds: number;
  /** Pending runs whose claim belongs to no living instance. */
  strandedRuns: number;
  /** Due for longer than the grace and still not planned. */
  schedulesOverdue: number;
  /** Schedules without a success in time. */
  schedulesLate: number;
  /** Calendars that schedules name, and that end soon or have ended. */
  calendarsEnding: number;
  /** Open episodes, by kind. */
  alertsOpen: Readonly<Partial<Record<AlertKind, number>>>;
  /** Effects that are not done yet. */
  effectsPending: number;
  /** Effects that have failed, and are tried again. */
  effectsFailing: number;
  /** For how long the oldest effect has waited that has not failed; 0: there is none. */
  oldestEffectSeconds: number;
  instancesAlive: number;
  /**
   * How long the oldest transaction in this database has kept its snapshot: rows that were updated or deleted since cannot be
   * cleaned up. 0: there is none. Only a role with pg_read_all_stats sees sessions of other roles.
   */
  oldestSnapshotSeconds: number;
  /** The versions of the time zone data that the living instances plan with, each once, sorted. */
  zoneData: string[];
}

// oxlint-disable-next-line max-lines-per-function -- one statement
export function sampleWork(db: Executor, { overdueSeconds }: { overdueSeconds: number }): Promise<Sample<WorkGauges>> {
  // The clock is joined to the schedules instead of read in a sub-select: the planner would assume that a third of them
  // are due before an unknown moment, and would start parallel workers for a count of none.
  return oneSample<WorkGauges>(
    db,
    sql`-- sampleWork
    WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${READY_LANES},
    living AS MATERIALIZED (SELECT i.id, i.zone_data FROM instances i, clock WHERE ${lives}),
    unclaimed AS (
      SELECT min(first.due_at) AS oldest FROM lanes, LATERAL (
        SELECT r.due_at FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NULL AND r.ready
          AND r.lane = lanes.lane AND r.priority = lanes.priority AND r.limit_id IS NULL ORDER BY r.due_at LIMIT 1) AS first
    ), placed AS (
      SELECT min(greatest(first.due_at, first.admitted_at)) AS oldest FROM limits, LATERAL (
        SELECT r.due_at, r.admitted_at FROM runs r WHERE r.limit_id = limits.id AND r.admitted_at IS NOT NULL
          AND r.status = 'pending' AND r.claimed_by IS NULL ORDER BY r.admitted_at LIMIT 1) AS first
    ), to_come AS (
      SELECT min(r.due_at) AS oldest FROM runs r WHERE r.status = 'pending' AND r.claimed_by IS NULL AND NOT r.ready
        AND r.limit_id IS NULL AND NOT r.observed
    ), claimed AS (
      SELECT min(greatest(r.due_at, r.admitted_at)) AS oldest, count(*) FILTER (WHERE living.id IS NULL)::int AS stranded
      FROM runs r LEFT JOIN living ON living.id = r.claimed_by WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL
    ), overdue AS (
      SELECT count(*)::int AS overdue FROM clock, schedules
      WHERE enabled AND next_fire_at < clock.now - make_interval(secs => ${overdueSeconds}) AND NOT ${noPlanning}
    ), waiting AS (
      SELECT count(*)::int AS effects, count(*) FILTER (WHERE failures > 0)::int AS failing,
        min(created_at) FILTER (WHERE failures = 0) AS oldest FROM effects
    ), backlogged AS (
      SELECT count(*)::int AS backlogs, count(*) FILTER (WHERE failures > 0)::int AS failing FROM backlogs
    ), alive AS (
      SELECT count(*)::int AS alive, coalesce(json_agg(DISTINCT zone_data COLLATE "C" ORDER BY zone_data COLLATE "C"), '[]') AS zone_data FROM living
    ), snapshots AS (
      SELECT min(began) AS oldest FROM (
        SELECT xact_start AS began FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS held
    )
    SELECT ${seconds(sql`clock.now - least(unclaimed.oldest, placed.oldest, to_come.oldest, claimed.oldest)`)} AS oldest_pending_seconds,
      claimed.stranded AS stranded_runs, overdue.overdue AS schedules_overdue,
      (SELECT count(*) FROM schedules WHERE uid IN (${LATE_UIDS}) AND enabled AND NOT ${isOver})::int AS schedules_late,
      (SELECT count(*) FROM calendars c WHERE ${ENDS_SOON}
        AND EXISTS (SELECT FROM schedule_calendars l WHERE l.calendar_id = c.id))::int AS calendars_ending,
      (SELECT coalesce(json_object_agg(kind, count), '{}') FROM (
        SELECT kind, count(*)::int FROM alerts WHERE until IS NULL GROUP BY kind) AS of) AS alerts_open,
      waiting.effects + backlogged.backlogs AS effects_pending, waiting.failing + backlogged.failing AS effects_failing,
      ${seconds(sql`clock.now - waiting.oldest`)} AS oldest_effect_seconds, alive.alive AS instances_alive, alive.zone_data,
      ${seconds(sql`clock.now - snapshots.oldest`)} AS oldest_snapshot_seconds, ${COST} AS cost_ms
    FROM clock, unclaimed, placed, to_come, claimed, overdue, waiting, backlogged, alive, snapshots`,
  );
}

/** 0: there is none, or it began later. */
function seconds(since: SQL): SQL {
  return sql`greatest(0, coalesce(extract(epoch FROM ${since}), 0))::float8`;
}

/** Enabled notifiers of whose messages people may not learn. A message that was cancelled says nothing about that. */
export function sampleNotifiers(db: Executor): Promise<Sample<TroubledNotifiers>> {
  return oneSample<TroubledNotifiers>(
    db,
    sql`-- sampleNotifiers
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), newest AS (
      SELECT DISTINCT ON (h.schedule_uid) h.schedule_uid AS uid, h.status FROM history h
      WHERE h.trigger <> 'schedule' AND h.trigger = 'notify' AND h.status = ANY (${texts(['succeeded', ...FAILING_ENDS])})
        AND h.ended_at > (SELECT now - interval '1 day' FROM clock)
      ORDER BY h.schedule_uid, h.finished_at DESC, h.id DESC
    )
    SELECT (
      SELECT coalesce(json_agg(n.id ORDER BY n.id), '[]') FROM notifiers n JOIN newest USING (uid)
      WHERE n.enabled AND newest.status <> 'succeeded'
    ) AS undelivered, (
      SELECT coalesce(json_agg(n.id ORDER BY n.id), '[]') FROM notifiers n WHERE n.enabled AND (
        SELECT min(r.created_at) FROM runs r
        WHERE r.schedule_uid = n.uid AND r.trigger NOT IN ('schedule', 'catchUp', 'backfill')
      ) < (SELECT now - interval '5 minutes' FROM clock)
    ) AS waiting, ${COST} AS cost_ms`,
  );
}

export interface OpenRunCounts {
  byStatus: Record<Extract<RunStatus, 'waiting' | 'pending' | 'running'>, number>;
  /** Due runs without a place of their limit. */
  waitingForLimit: number;
}
export type ScheduleCounts = Record<ScheduleStatus, number>;

/** Counts all open runs, without messages of notifiers. */
export async function countOpenRuns(db: Executor): Promise<Sample<OpenRunCounts>> {
  const count = (status: string) => sql`count(*) FILTER (WHERE status = ${status})::int AS ${sql.identifier(status)}`;
  type Counts = OpenRunCounts['byStatus'] & { waitingForLimit: number };
  const { values, costMs } = await oneSample<Counts>(
    db,
    sql`-- countOpenRuns
    SELECT open.*, ${COST} AS cost_ms
    FROM (SELECT ${count('waiting')}, ${count('pending')}, ${count('running')}, count(*) FILTER (
      WHERE status = 'pending' AND limit_id IS NOT NULL AND admitted_at IS NULL
        AND due_at <= (SELECT clock_timestamp()))::int AS waiting_for_limit FROM runs
      WHERE trigger <> 'notify') AS open`,
  );
  const { waitingForLimit, ...byStatus } = values;
  return { values: { byStatus, waitingForLimit }, costMs };
}

/** The index of due rows counts schedules with a next fire; another index counts all that are not simply active. */
export async function countSchedules(db: Executor): Promise<Sample<ScheduleCounts>> {
  const count = (name: string, condition: SQL) =>
    sql`count(*) FILTER (WHERE ${condition})::int AS ${sql.identifier(name)}`;
  const { values, costMs } = await oneSample<{
    timed: number;
    /** How many of these are in error. */
    broken: number;
    /** Active without a next fire: they follow other schedules. */
    following: number;
    paused: number;
    ended: number;
    error: number;
  }>(
    db,
    sql`-- countSchedules
    SELECT timed.count AS timed, apart.*, ${COST} AS cost_ms
    FROM (SELECT count(*)::int AS count FROM schedules WHERE enabled AND next_fire_at IS NOT NULL) AS timed, (
      SELECT ${count('broken', sql`enabled AND error IS NOT NULL AND next_fire_at IS NOT NULL`)},
        ${count('following', sql`enabled AND error IS NULL AND next_fire_at IS NULL AND NOT ${isOver}`)},
        ${count('paused', sql`NOT enabled`)}, ${count('ended', sql`enabled AND error IS NULL AND ${isOver}`)},
        ${count('error', sql`enabled AND error IS NOT NULL`)}
      FROM schedules WHERE ${isApart}) AS apart`,
  );
  const { timed, broken, following, ...apart } = values;
  return { values: { active: timed - broken + following, ...apart }, costMs };
}

/** Enabled schedules that are silent until the wrong time comes again. */
export async function countSchedulesAhead(db: Executor): Promise<Sample<number>> {
  const { values, costMs } = await oneSample<{ ahead: number }>(
    db,
    sql`-- countSchedulesAhead
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT (SELECT count(*)::int FROM schedules s, clock WHERE s.enabled AND ${isAhead}) AS ahead, ${COST} AS cost_ms`,
  );
  return { values: values.ahead, costMs };
}

/** A result, and how many ms the server worked on it, planning included: a caller that samples repeatedly decides by that. */
export interface Sample<T> {
  values: T;
  costMs: number;
}

/** A column of the one result row. Counted from the start of the transaction, which is before the planning. */
export const COST = sql`(extract(epoch FROM clock_timestamp() - now()) * 1000)::float8`;

/** The one row of a statement, which has COST as `cost_ms` beside its values. */
export async function oneSample<T extends object>(db: Executor, statement: SQL): Promise<Sample<T>> {
  const [row] = await recordsOf<T & { costMs: number }>(db)(statement);
  if (!row) throw new Error('a gauges statement answered no row');
  const { costMs, ...values } = row;
  return { values: values as unknown as T, costMs };
}
