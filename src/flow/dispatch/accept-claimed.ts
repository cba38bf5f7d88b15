import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { abandonRuns } from '../../store/runs/ends/abandon-runs.ts';
import { wakeFor } from '../../runtime/loop/wake.ts';
import type { Dispatch, DispatchDeps } from './dispatch-state.ts';
import { acceptClaims } from './claims.ts';

/** What is of a deleted schedule takes no room, is not sent, and stands in the way of no other run of its lane. */
export async function acceptUnlessDeleted(dispatch: Dispatch, claimed: readonly ClaimedRun[]): Promise<void> {
  if (claimed.length === 0) return;
  const { deps, book } = dispatch;
  const runs = claimed.filter(({ ofDeleted }) => !ofDeleted);
  for (const run of runs) book.addClaims(book.of(run.lane), 1);
  acceptClaims(dispatch, runs);
  if (runs.length < claimed.length) await abandonDeleted(deps, claimed);
}

async function abandonDeleted({ database, events, wake }: DispatchDeps, claimed: readonly ClaimedRun[]): Promise<void> {
  const ids = claimed.filter(({ ofDeleted }) => ofDeleted).map(({ id }) => id);
  // If this fails, or the process dies, a slice of the deletion ends them.
  const done = await database.transaction((tx) => abandonRuns(tx, ids, 'skipLocked')).catch(() => null);
  if (!done) return;
  const { abandoned: count, effects } = done;
  if (count > 0) events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: null, count });
  wakeFor(wake, { effects, toAdmit: count > 0 });
}
