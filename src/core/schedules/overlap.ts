import type { Instant } from '../instant.ts';
import type { RunStatus } from '../runs/run.ts';
import { OVERLAPS, type Overlap } from './schedule.ts';

/** An open run of a schedule that allows one at a time. */
export interface OverlappingRun {
  id: string;
  status: Extract<RunStatus, 'waiting' | 'pending' | 'running'>;
  createdAt: Instant;
}

export type OverlapVerdict = 'pending' | 'skipped' | 'cancelled';

/**
 * Decides about the open runs of one schedule, in the order in which they came; a run that is not in the answer stays
 * as it is. `skip`, `queue`: the first waiting run starts if no other is active. Then `skip` skips the rest, `queue`
 * lets the newest wait. `replace`: the newest starts, and all others are cancelled. `allow` (since an edit): all start.
 * A value that only a later version knows: all stay as they are.
 */
export function judgeOverlap(overlap: Overlap, open: readonly OverlappingRun[]): Map<string, OverlapVerdict> {
  const waiting = open.filter(({ status }) => status === 'waiting').sort(byArrival);
  const active = open.filter(({ status }) => status !== 'waiting');
  if (overlap === 'allow') return new Map(verdictsOf(waiting, 'pending'));
  if (!OVERLAPS.includes(overlap)) return new Map();
  const newest = waiting.at(-1);
  if (!newest) return new Map();
  if (overlap === 'replace') {
    return new Map([...verdictsOf([...active, ...waiting], 'cancelled'), [newest.id, 'pending']]);
  }
  const started = active.length === 0 ? waiting.slice(0, 1) : [];
  const rest = waiting.slice(started.length);
  const skipped = overlap === 'queue' ? rest.filter((run) => run !== newest) : rest;
  return new Map([...verdictsOf(started, 'pending'), ...verdictsOf(skipped, 'skipped')]);
}

function verdictsOf(runs: readonly OverlappingRun[], verdict: OverlapVerdict): [string, OverlapVerdict][] {
  return runs.map(({ id }) => [id, verdict]);
}

/** Ids of runs recorded at the same moment are in the order of their fire times. */
function byArrival(a: OverlappingRun, b: OverlappingRun): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}
