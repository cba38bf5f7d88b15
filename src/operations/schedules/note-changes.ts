/**
 * Guarantees: what a caller changes of schedules is noted with it; what is left as it was is not.
 * Transaction: that of the caller, which makes the changes.
 * If the process dies here: neither the changes nor the note are there.
 */
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Edited } from './plan-before-update.ts';
import type { ChangedSchedule } from './schedule-writes.ts';

/** The schedules that one transaction has written, and their previous states (null: there was none), in the same order. */
export type NoteChanges = (
  tx: Transaction,
  changed: readonly ChangedSchedule[],
  before: readonly (Schedule | null)[],
) => Promise<void>;

export async function noteChanges(
  tx: Transaction,
  { note }: { note?: NoteChanges },
  decided: readonly Edited[],
  changed: readonly ChangedSchedule[],
): Promise<void> {
  if (changed.every(({ change }) => change === 'unchanged')) return;
  const before = decided.map(({ schedule }) => schedule);
  await note?.(tx, changed, before);
}
