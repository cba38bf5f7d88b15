/**
 * Guarantees: a schedule is paused once `pauseAfterFailures` of its runs in a row did not succeed, since it was enabled and since its
 *   last success; it stays as it is if it has been paused, deleted or given another number meanwhile.
 * Transaction: that of an edit, under the schedule's row lock, in which the runs are counted.
 * If the process dies here: the effect is still there (pauser.ts), and the runs are counted again.
 */
import { pausedBecause } from '../../core/schedules/definition-change.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Effect } from '../../store/effects/effect-rows.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { countFailuresInARow } from '../../store/schedules/watches/outcome-watches.ts';
import { BY_FIRELOCK } from '../../operations/schedules/ended-pauses.ts';
import {
  type ScheduleChangeDeps,
  changeFoundSchedules,
} from '../../operations/schedules/schedule-changes.ts';
import type { ScheduleChange } from '../../operations/schedules/schedule-writes.ts';

export async function pauseFailing(deps: ScheduleChangeDeps, failing: Effect): Promise<void> {
  const { scheduleId, scheduleUid, runId } = failing;
  if (scheduleId === null) return;
  let reason = '';
  const find = async (tx: Transaction): Promise<ScheduleChange[]> => {
    const found = (await lockSchedules(tx, [scheduleId])).get(scheduleId);
    if (found?.uid !== scheduleUid) return [];
    // A statement of its own: the snapshot of the locking statement is older.
    const count = await countFailuresInARow(tx, scheduleUid);
    if (!count || count.failures < count.atMost) return [];
    reason = `${runsInARow(count.atMost)}; the last of them is ${runId}`;
    return [
      {
        id: scheduleId,
        by: BY_FIRELOCK,
        decide: (current) => pausedBecause((current ?? found).definition, reason),
      },
    ];
  };
  const { changed } = await changeFoundSchedules(deps, find);
  if (changed.length > 0) deps.events.emit({ type: 'schedulePaused', scheduleId, reason });
}

function runsInARow(count: number): string {
  return count === 1 ? 'a run did not succeed' : `${count} runs in a row did not succeed`;
}
