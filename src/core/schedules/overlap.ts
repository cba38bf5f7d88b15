import { OVERLAPS, type Overlap } from './schedule.ts';

/** The open runs of a schedule that allows one at a time, as far as a judgement needs them: however many are open, these are few. */
export interface OpenRuns {
  /** Ids of waiting runs, in the order in which they came: all, or the first of them. */
  waiting: readonly string[];
  /** More wait than these; all of them came later. */
  moreWait: boolean;
  /** A run is active, whatever triggered it. */
  isActive: boolean;
  /** Ids of active runs that give way to a newer one: all, or some of them. Backfilled and retried runs do not. */
  replaceable: readonly string[];
}

export type OverlapVerdict = 'pending' | 'skipped' | 'cancelled';

/**
 * Decides about the open runs of one schedule, in the order in which they came; a run that is not in the answer stays
 * as it is. `skip`, `queue`: the first waiting run starts if no other is active. Then `skip` skips the rest, `queue`
 * lets the newest wait. `replace`: the newest starts, and all others are cancelled. `allow` (since an edit): all start.
 * A value that only a later version knows: all stay as they are. If more wait, the newest is not among these; they are judged next, as if
 * they came a moment later.
 */
export function judgeOverlap(
  overlap: Overlap,
  { waiting, moreWait, isActive, replaceable }: OpenRuns,
): Map<string, OverlapVerdict> {
  if (overlap === 'allow') return new Map(verdictsOf(waiting, 'pending'));
  if (!OVERLAPS.includes(overlap)) return new Map();
  const newest = moreWait ? undefined : waiting.at(-1);
  if (overlap === 'replace') {
    if (newest === undefined) return new Map(verdictsOf(waiting, 'cancelled'));
    return new Map([...verdictsOf([...replaceable, ...waiting], 'cancelled'), [newest, 'pending']]);
  }
  const started = isActive ? [] : waiting.slice(0, 1);
  const rest = waiting.slice(started.length);
  const skipped = overlap === 'queue' ? rest.filter((id) => id !== newest) : rest;
  return new Map([...verdictsOf(started, 'pending'), ...verdictsOf(skipped, 'skipped')]);
}

function verdictsOf(ids: readonly string[], verdict: OverlapVerdict): [string, OverlapVerdict][] {
  return ids.map((id) => [id, verdict]);
}
