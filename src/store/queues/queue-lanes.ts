import { type SQL, sql } from 'drizzle-orm';

/** The lane of a queue that workers pull from. */
export function laneOfQueue(queue: string): string {
  return `${PULL}${queue}`;
}

/** Null: runs of this lane are sent. */
export function queueOfLane(lane: string): string | null {
  return lane.startsWith(PULL) ? lane.slice(PULL.length) : null;
}

export function isPull(lane: SQL): SQL {
  return sql`starts_with(${lane}, ${PULL})`;
}

const PULL = 'pull ';
