import { sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { laneOfQueue, queueOfLane } from '../../core/runs/run-lane.ts';
import { isPull } from '../runs/statement-parts.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { namesSeen, queuesSeen, runsInScope } from '../scopes/in-scope.ts';
import { noHandoffs } from '../instances/installation-row.ts';

/** The name of the NOTIFY about work for pull workers: a hint, never needed. */
export const WORK_FOR_PULL = 'firelock_pull';

export async function hintAtWork(db: Executor): Promise<void> {
  await db.execute(sql`-- hintAtWork
    SELECT pg_notify(${WORK_FOR_PULL}, '')`);
}

export interface SeenWorker {
  queue: string;
  workerId: string;
}

/** Notes that these workers asked for work, unless that was written a moment ago. Each of them once. */
export async function seeWorkers(db: Executor, seen: readonly SeenWorker[]): Promise<void> {
  await db.execute(sql`-- seeWorkers
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    INSERT INTO queue_workers AS w (queue, worker_id, seen_at)
    SELECT queue, worker_id, clock.now
    FROM unnest(${texts(seen.map(({ queue }) => queue))}, ${texts(seen.map(({ workerId }) => workerId))})
      AS s(queue, worker_id), clock
    ORDER BY queue COLLATE "C", worker_id COLLATE "C"
    ON CONFLICT (queue, worker_id) DO UPDATE SET seen_at = excluded.seen_at
    WHERE w.seen_at < excluded.seen_at - interval '5 seconds'`);
}

/** Those that did not ask for ten minutes, the oldest first; answers how many. */
export async function forgetOldWorkers(db: Executor, most: number): Promise<number> {
  const gone = await rowsOf(db)(sql`-- forgetOldWorkers
    DELETE FROM queue_workers WHERE (queue, worker_id) IN (
      SELECT queue, worker_id FROM queue_workers
      WHERE seen_at < (SELECT clock_timestamp() - interval '10 minutes')
      ORDER BY seen_at LIMIT ${most} FOR UPDATE SKIP LOCKED) RETURNING 1`);
  return gone.length;
}

/** Which of these queues have a run that may be claimed: none while maintenance holds runs. */
export async function queuesWithWork(db: Executor, queues: readonly string[]): Promise<string[]> {
  const lanes = await onlyColumnOf<string>(db)(sql`-- queuesWithWork
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT l.lane FROM unnest(${texts(queues.map(laneOfQueue))}) AS l(lane)
    WHERE NOT ${noHandoffs} AND EXISTS (SELECT FROM runs WHERE status = 'pending' AND claimed_by IS NULL AND ready AND lane = l.lane)`);
  return lanes.flatMap((lane) => queueOfLane(lane) ?? []);
}

/** The state of a queue. */
interface QueueState {
  queue: string;
  /** Due, and not claimed. */
  pending: number;
  /** Not due yet. */
  scheduled: number;
  running: number;
  /** How long the oldest pending run has been due; 0 where there is none. */
  oldestPendingSeconds: number;
  /** Workers that asked within the last five minutes. */
  workers: number;
}

/**
 * All queues that have runs, or whose workers were seen lately; by name. A caller with a scope sees its queues whole. Of those that it
 * may only name it sees its own runs, and the workers: whether any worker serves them.
 */
export async function listQueues(db: Executor, scope: Scope): Promise<QueueState[]> {
  const inScope = [...queuesSeen(sql`lane`, scope), ...runsInScope(scope, 'work')];
  const own = sql.join(inScope.map((condition) => sql` AND ${condition}`));
  // Conditions of a scope are on `r`.
  const runs = scope === null ? sql`runs` : sql`runs r`;
  const seen = sql.join(namesSeen(sql`queue`, scope).map((condition) => sql` AND ${condition}`));
  const rows = await rowsOf<{
    lane: string;
    pending: number;
    scheduled: number;
    running: number;
    oldest_pending: number;
    workers: number;
  }>(db)(sql`-- listQueues
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    open AS (
      SELECT lane, count(*) FILTER (WHERE due_at <= (SELECT now FROM clock)) AS pending,
        count(*) FILTER (WHERE due_at > (SELECT now FROM clock)) AS scheduled, min(due_at) AS oldest
      FROM ${runs} WHERE status = 'pending' AND claimed_by IS NULL AND lane >= ${laneOfQueue('').trimEnd()} AND ${isPull(sql`lane`)}${own}
      GROUP BY lane
    ), running AS (
      SELECT lane, count(*) AS running FROM ${runs} WHERE status = 'running' AND ${isPull(sql`lane`)}${own} GROUP BY lane
    ), seen AS (
      SELECT ${laneOfQueue('')} || queue AS lane, count(*) AS workers FROM queue_workers
      WHERE seen_at > (SELECT now - interval '5 minutes' FROM clock)${seen} GROUP BY queue
    )
    SELECT lane, coalesce(pending, 0)::int AS pending, coalesce(scheduled, 0)::int AS scheduled,
      coalesce(running, 0)::int AS running, coalesce(workers, 0)::int AS workers,
      greatest(0, coalesce(round(extract(epoch FROM clock.now - oldest), 3), 0))::float8 AS oldest_pending
    FROM clock, open FULL JOIN running USING (lane) FULL JOIN seen USING (lane)
    ORDER BY lane COLLATE "C"`);
  return rows.map(({ lane, oldest_pending, ...counts }) => ({
    queue: queueOfLane(lane) ?? '',
    ...counts,
    oldestPendingSeconds: oldest_pending,
  }));
}
