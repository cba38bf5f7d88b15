/** The lane of a queue that workers pull from. */
export function laneOfQueue(queue: string): string {
  return `${PULL}${queue}`;
}

/** Null: runs of this lane are sent. */
export function queueOfLane(lane: string): string | null {
  return lane.startsWith(PULL) ? lane.slice(PULL.length) : null;
}

const PULL = 'pull ';
