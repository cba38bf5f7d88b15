import { sql } from 'drizzle-orm';
import type { RunStatus } from '../core/run.ts';
import type { ScheduleStatus } from '../core/schedule.ts';
import type { Executor } from './executor.ts';
import { lives } from './instances.ts';
import { rowsOf } from './rows.ts';
import { isOver } from './timings.ts';

/** What the database looks like from outside, sampled now and then; a scrape never asks for it. */
export interface Gauges {
  schedules: Record<ScheduleStatus, number>;
  openRuns: Partial<Record<RunStatus, number>>;
  /** How long the oldest pending run has been due, claimed or not; 0 where there is none. */
  oldestPendingSeconds: number;
  /** Pending runs whose claimant is no living instance. */
  strandedRuns: number;
  /** Due for longer than the grace and still not planned. */
  schedulesOverdue: number;
  instancesAlive: number;
  /** Versions of the time zone data that the living plan with, each once, sorted. */
  zoneData: string[];
}

export async function sampleGauges(db: Executor, overdueSeconds: number): Promise<Gauges> {
  const [row] = await rowsOf<{
    active: number;
    paused: number;
    ended: number;
    error: number;
    pending: number;
    oldest_pending: number | null;
    stranded: number;
    overdue: number;
    alive: number;
    waiting: number;
    running: number;
    zone_data: string;
  }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    by_status AS (
      SELECT count(*) FILTER (WHERE enabled AND error IS NULL AND NOT ${isOver})::int AS active,
        count(*) FILTER (WHERE NOT enabled)::int AS paused,
        count(*) FILTER (WHERE enabled AND error IS NULL AND ${isOver})::int AS ended,
        count(*) FILTER (WHERE enabled AND error IS NOT NULL)::int AS error
      FROM schedules
    )
    SELECT by_status.*,
      (SELECT count(*) FROM runs WHERE status = 'pending' AND claimed_by IS NULL)::int
        + (SELECT count(*) FROM runs WHERE status = 'pending' AND claimed_by IS NOT NULL)::int AS pending,
      (SELECT count(*) FROM runs WHERE overlap_guarded AND status = 'waiting')::int
        + (SELECT count(*) FROM runs WHERE status = 'waiting' AND open_dependencies IS NOT NULL)::int AS waiting,
      (SELECT count(*) FROM runs WHERE status = 'running')::int AS running,
      extract(epoch FROM clock.now - least(
        (SELECT min(due_at) FROM runs WHERE status = 'pending' AND claimed_by IS NULL),
        (SELECT min(due_at) FROM runs WHERE status = 'pending' AND claimed_by IS NOT NULL)))::float8 AS oldest_pending,
      (SELECT count(*) FROM runs r WHERE status = 'pending' AND claimed_by IS NOT NULL AND NOT EXISTS (
        SELECT FROM instances i WHERE i.id = r.claimed_by AND ${lives}))::int AS stranded,
      (SELECT count(*) FROM schedules
        WHERE enabled AND next_fire_at < (SELECT clock_timestamp() - make_interval(secs => ${overdueSeconds})))::int AS overdue,
      (SELECT count(*) FROM instances i WHERE ${lives})::int AS alive,
      (SELECT coalesce(json_agg(DISTINCT zone_data), '[]') FROM instances i WHERE ${lives})::text AS zone_data
    FROM by_status, clock`,
  );
  if (!row) throw new Error('the gauges statement answered no row');
  return {
    schedules: { active: row.active, paused: row.paused, ended: row.ended, error: row.error },
    openRuns: { waiting: row.waiting, pending: row.pending, running: row.running },
    oldestPendingSeconds: Math.max(0, row.oldest_pending ?? 0),
    strandedRuns: row.stranded,
    schedulesOverdue: row.overdue,
    instancesAlive: row.alive,
    zoneData: (JSON.parse(row.zone_data) as string[]).sort(),
  };
}
