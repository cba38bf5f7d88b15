/**
 * Guarantees: a claimed run whose schedule was deleted is not sent, and stands in the way of no other run of its lane.
 * Transaction: one for all of them.
 * If the process dies here: a slice of the deletion ends them (flow/effects/backlogs.ts).
 */
import { wakeFor } from '../../runtime/loop/wake.ts';
import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { abandonRuns } from '../../store/runs/ends/abandon-runs.ts';
import type { DispatchDeps } from './dispatch-state.ts';

export async function abandonDeleted(
  { database, events, wake }: DispatchDeps,
  claimed: readonly ClaimedRun[],
): Promise<void> {
  const ids = claimed.filter(({ ofDeleted }) => ofDeleted).map(({ id }) => id);
  // If this fails, a slice ends them.
  const done = await database.transaction((tx) => abandonRuns(tx, ids, 'skipLocked')).catch(() => null);
  if (!done) return;
  const { abandoned: count, effects } = done;
  if (count > 0) events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: null, count });
  wakeFor(wake, { effects, toAdmit: count > 0 });
}
