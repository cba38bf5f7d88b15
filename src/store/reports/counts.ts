import { type SQL, sql } from 'drizzle-orm';
import type { RunStatus } from '../../core/runs/run.ts';
import type { ScheduleStatus } from '../../core/schedules/schedule.ts';
import type { Executor } from '../../postgres/executor.ts';
import { isAhead } from '../schedules/cursors-ahead.ts';
import { isApart, isOver } from '../schedules/search/status-conditions.ts';
import { COST, oneSample, type Sample } from './sample.ts';

export interface OpenRunCounts {
  byStatus: Record<Extract<RunStatus, 'waiting' | 'pending' | 'running'>, number>;
  /** Due runs without a place of their limit. */
  waitingForLimit: number;
}
export type ScheduleCounts = Record<ScheduleStatus, number>;

/** Counts all open runs, without messages of notifiers. */
export async function countOpenRuns(db: Executor): Promise<Sample<OpenRunCounts>> {
  const count = (status: string) =>
    sql`count(*) FILTER (WHERE status = ${status})::int AS ${sql.identifier(status)}`;
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
