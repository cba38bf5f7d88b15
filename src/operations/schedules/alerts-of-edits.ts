/**
 * Guarantees: a pause by firelock opens an episode; what a person pauses is not told of any more; any other edit has the open episodes of
 *   the schedule looked at.
 * Transaction: that of the edit, under the row locks of the schedules.
 * If the process dies here: nothing of the edit is written.
 */
import { BY_FIRELOCK } from '../../core/time/definition-change.ts';
import type { Transaction } from '../../postgres/executor.ts';
import {
  type AlertCause,
  closeAlertsOf,
  lookAtAlertsOf,
  writeAlertEffects,
} from '../../store/alerts/alert-effects.ts';
import type { WatchedEdit } from './watch-outcomes.ts';

/** An edit, and who made it; null: a caller without a name. */
export type SignedEdit = WatchedEdit & { by: string | null };

/** Answers how many effects it wrote. */
export async function keepAlerts(tx: Transaction, edits: readonly SignedEdit[]): Promise<number> {
  const byHand = edits.filter((edit) => isPaused(edit) && edit.by !== BY_FIRELOCK);
  const [first] = byHand;
  const taken = byHand.map(({ after: { uid }, by }) => ({ uid, overBy: byPerson('paused', by) }));
  if (first) await closeAlertsOf(tx, taken, first.at);
  const edited = edits.filter(({ before }) => before !== null);
  await lookAtAlertsOf(
    tx,
    edited.map(({ after: { uid } }) => uid),
  );
  const paused = edits.filter((edit) => isPaused(edit) && edit.by === BY_FIRELOCK);
  return writeAlertEffects(tx, paused.map(causeOf));
}

/** Why episodes of a schedule are over that a person paused or deleted. */
export function byPerson(did: 'paused' | 'deleted', by: string | null): string {
  return by === null ? did : `${did} by ${by}`;
}

function isPaused({ before, after }: SignedEdit): boolean {
  return before?.definition.enabled === true && !after.definition.enabled;
}

function causeOf({ after: { uid, id, version }, at }: SignedEdit): AlertCause {
  return {
    ...{ kind: 'breaks', alertKind: 'paused', runId: null, status: 'cancelled' },
    ...{ schedule: { uid, id, version }, at },
  };
}
