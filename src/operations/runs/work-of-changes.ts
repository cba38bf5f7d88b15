import { queueOfLane } from '../../core/runs/run-lane.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import type { RunChange } from '../../store/runs/save-runs.ts';

/** The work that these changes leave after the commit. */
export function workOfChanges(changes: readonly RunChange[], effects: number): Required<Work> {
  const pending = changes.filter(({ to }) => to.status === 'pending');
  const toPull = pending.some(({ to }) => queueOfLane(to.lane) !== null);
  const toAdmit = changes.some(({ from, to }) => from.limitId !== null || to.limitId !== null);
  return { effects, toClaim: pending.length, toPull, toAdmit, messages: 0 };
}
