import { type ScopeShares, shareOf } from '../access/scope.ts';

/** The names of queues. */
export const QUEUE_NAME = /^[A-Za-z0-9._-]{1,128}$/;

/** The lane of a queue that workers pull from. */
export function laneOfQueue(queue: string): string {
  return `${PULL}${queue}`;
}

/** Null: runs of this lane are sent. */
export function queueOfLane(lane: string): string | null {
  return lane.startsWith(PULL) ? lane.slice(PULL.length) : null;
}

const PULL = 'pull ';

/** Of a schedule that only observes: nothing can be sent there. */
export function hasNoTarget(lane: string): boolean {
  return lane.startsWith('none ');
}

/**
 * Stands between the lane of a target and the scope of the run: so each scope has lanes of its own, also where several call one host. No
 * lane of a target contains it.
 */
export const BEFORE_SCOPE = ' @';

/** The lane of a run by the lane of its target and the name that gives it a scope. Workers ask for a queue, whoever its runs belong to. */
export function laneInScope(shares: ScopeShares, lane: string, name: string | null): string {
  const { prefix } = shareOf(shares, name);
  return prefix === '' || queueOfLane(lane) !== null ? lane : lane + BEFORE_SCOPE + prefix;
}

/** The lane of the target. */
export function withoutScope(lane: string): string {
  const at = lane.lastIndexOf(BEFORE_SCOPE);
  return at === -1 ? lane : lane.slice(0, at);
}
