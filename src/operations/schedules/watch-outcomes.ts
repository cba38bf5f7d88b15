/**
 * Guarantees: what is kept of schedules that have `pauseAfterFailures` or `successWithinSeconds` follows every edit of them.
 * Transaction: that of the edit, under the row locks of the schedules; it locks the rows of outcome_watches after them.
 * If the process dies here: nothing of the edit is written.
 */
import type { Instant } from '../../core/instant.ts';
import { isOutcomeWatched, watchAfterEdit } from '../../core/schedules/outcome-watch.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { deleteWatches, lockWatches, saveWatches } from '../../store/schedules/watches/outcome-watches.ts';

export interface WatchedEdit {
  /** Null: it is being created. */
  before: Schedule | null;
  after: Schedule;
  at: Instant;
}

/** Costs nothing if neither field is or was set. */
export async function keepWatches(tx: Transaction, edits: readonly WatchedEdit[]): Promise<void> {
  const kept = edits.filter(({ after }) => isOutcomeWatched(after.definition));
  const ended = edits.filter(({ before, after }) => isWatched(before) && !isOutcomeWatched(after.definition));
  await deleteWatches(tx, ended.map(uidOf));
  const known = await lockWatches(tx, kept.filter(({ before }) => isWatched(before)).map(uidOf));
  const watches = kept.flatMap((edit) => watchAfterEdit(known.get(edit.after.uid) ?? null, edit) ?? []);
  await saveWatches(tx, watches);
}

function isWatched(schedule: Schedule | null): boolean {
  return schedule !== null && isOutcomeWatched(schedule.definition);
}

function uidOf({ after }: WatchedEdit): string {
  return after.uid;
}
