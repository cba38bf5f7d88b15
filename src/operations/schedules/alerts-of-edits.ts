/**
 * Guarantees: a pause by firelock opens an episode, and enabling the schedule ends it; what a person pauses is not told of any more; an
 *   episode whose bound an edit takes away is over.
 * Transaction: that of the edit, under the row locks of the schedules.
 * If the process dies here: nothing of the edit is written.
 */
import type { AlertKind } from '../../core/alerts/alert.ts';
import { BY_FIRELOCK } from '../../core/schedules/definition-change.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import {
  type AlertCause,
  type Healed,
  closeAlertsSilently,
  healOpenAlerts,
  writeAlertEffects,
} from '../../store/alerts/alert-effects.ts';
import type { WatchedEdit } from './watch-outcomes.ts';

/** An edit, and who made it; null: a caller without a name. */
export type SignedEdit = WatchedEdit & { by: string | null };

/** Answers how many effects it wrote. */
export async function keepAlerts(tx: Transaction, edits: readonly SignedEdit[]): Promise<number> {
  const byHand = edits.filter((edit) => isPaused(edit) && edit.by !== BY_FIRELOCK);
  const [first] = byHand;
  if (first) await closeAlertsSilently(tx, byHand.map(uidOf), first.at);
  const paused = edits.filter((edit) => isPaused(edit) && edit.by === BY_FIRELOCK);
  return (
    (await writeAlertEffects(tx, paused.map(causeOf))) + (await healOpenAlerts(tx, edits.flatMap(healedBy)))
  );
}

function isPaused({ before, after }: SignedEdit): boolean {
  return before?.definition.enabled === true && !after.definition.enabled;
}

function uidOf({ after }: SignedEdit): string {
  return after.uid;
}

function causeOf({ after, at }: SignedEdit): AlertCause {
  return {
    ...{ kind: 'breaks', alertKind: 'paused', runId: null, status: 'cancelled' },
    ...{ schedule: scheduleOf(after), at },
  };
}

function healedBy({ before, after, at }: SignedEdit): Healed[] {
  if (!before) return [];
  const alertKinds: AlertKind[] = [];
  if (!before.definition.enabled && after.definition.enabled) alertKinds.push('paused');
  if (before.late && !after.late) alertKinds.push('late');
  return alertKinds.length === 0 ? [] : [{ schedule: scheduleOf(after), alertKinds, at }];
}

function scheduleOf({ uid, id, version }: Schedule) {
  return { uid, id, version };
}
