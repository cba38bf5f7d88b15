/**
 * Guarantees: after an edit of `overlap`, what waits and what is open is judged by the new definition.
 * Transaction: that of the edit, under the row locks it holds.
 * If the process dies here: nothing of the edit is written.
 */
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type JudgedOverlaps, guardOpenRuns, judgeOverlapsNowOrSoon } from '../../store/runs/overlaps.ts';
import type { Edited } from './plan-before-update.ts';

/** What waits is judged by the new definition, as if it came now; what is open counts from now on. */
export async function judgeEdited(
  tx: Transaction,
  edited: readonly Edited[],
): Promise<JudgedOverlaps | null> {
  const changed = edited.flatMap(({ schedule, write }) => (schedule && write ? [{ schedule, write }] : []));
  const guarded = changed.filter(({ write }) => write.definition.overlap !== 'allow');
  const newly = guarded.filter(({ schedule }) => schedule.definition.overlap === 'allow');
  const once = changed.filter(({ schedule }) => schedule.definition.overlap !== 'allow');
  if (newly.length > 0) await guardOpenRuns(tx, newly.map(uidOf));
  const uids = [...new Set([...guarded, ...once].map(uidOf))];
  return uids.length > 0 ? judgeOverlapsNowOrSoon(tx, uids) : null;
}

function uidOf({ schedule }: { schedule: Schedule }): string {
  return schedule.uid;
}
