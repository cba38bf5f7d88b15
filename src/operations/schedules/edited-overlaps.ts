/**
 * Guarantees: after an edit, what is open counts for `overlap`, and for what is kept of outcomes, as the new definition says, and what
 *   waits is judged by it; many open runs delay neither the edit nor what is fired.
 * Transaction: that of the edit, under the row locks it has; what is left of many runs is marked or judged in slices.
 * If the process dies here: nothing of the edit is written; any instance does the slices that are left.
 */
import { isOutcomeWatched } from '../../core/schedules/outcome-watch.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { markOpenRuns } from '../../store/runs/mark-runs.ts';
import { type JudgedOverlaps, judgeOverlapsNowOrSoon } from '../../store/runs/overlaps.ts';
import type { Edited } from './plan-before-update.ts';

/** What waits is judged by the new definition, as if it came now; what is open counts from now on. After the schedules are written. */
export async function judgeEdited(tx: Transaction, edited: readonly Edited[]): Promise<JudgedOverlaps> {
  const changed = edited.flatMap(({ schedule, write }) => (schedule && write ? [{ schedule, write }] : []));
  const isNew = (counts: (definition: Schedule['definition']) => boolean, { schedule, write }: Changed) =>
    counts(write.definition) && !counts(schedule.definition);
  const newly = changed.filter((one) => isNew(isGuarded, one) || isNew(isOutcomeWatched, one));
  const backlogs = await markOpenRuns(
    tx,
    newly.map(({ schedule: { uid, id: scheduleId } }) => ({ uid, scheduleId })),
  );
  const toJudge = changed.filter(
    ({ schedule, write }) => isGuarded(write.definition) || isGuarded(schedule.definition),
  );
  const judged = await judgeOverlapsNowOrSoon(
    tx,
    toJudge.map(({ schedule }) => schedule.uid),
  );
  return { ...judged, effects: judged.effects + backlogs };
}

interface Changed {
  schedule: Schedule;
  write: NonNullable<Edited['write']>;
}

function isGuarded({ overlap }: Schedule['definition']): boolean {
  return overlap !== 'allow';
}
