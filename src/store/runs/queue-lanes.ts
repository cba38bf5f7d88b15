import { type SQL, sql } from 'drizzle-orm';
import { laneOfQueue } from '../../core/runs/run-lane.ts';

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
