/**
 * Guarantees: runs of a schedule that must not overlap start one at a time, whoever records or ends them at the same moment.
 * Transaction: the schedules' row locks are taken by its first statement; the decision is a later one, and sees all that was done under them.
 * If the process dies here: what waits for nothing is found by recovery, and judged then.
 */
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from '../store/database.ts';
import { type Aftermath } from '../store/followers.ts';
import { type Judged, judgeOverlapsUnderLock, lockForOverlap } from '../store/overlaps.ts';

export interface OverlapDeps {
  database: Database;
  events: EventBus;
  /** There are runs to claim. */
  wakeDispatch: () => void;
}

/** Sees to what the ends of runs brought about. Answers how many waiting runs it started. */
export async function followUp(deps: OverlapDeps, aftermath: Aftermath): Promise<number> {
  let { toJudge, toClaim } = aftermath;
  let started = 0;
  while (toJudge.length > 0) {
    const uids = toJudge;
    const judged = await deps.database.transaction(async (tx) => {
      await lockForOverlap(tx, uids);
      return judgeOverlapsUnderLock(tx, uids);
    });
    tellJudged(deps.events, judged);
    started += judged.started;
    // What is skipped or replaced has ended too, and others may follow that.
    ({ toJudge } = judged.aftermath);
    toClaim += judged.started + judged.aftermath.toClaim;
  }
  if (toClaim > 0) deps.wakeDispatch();
  return started;
}

export function tellJudged(events: EventBus, { skipped, replaced }: Judged): void {
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'overlap', count: skipped });
  if (replaced > 0) events.emit({ type: 'runsCancelled', reason: 'replaced', count: replaced });
}
