/**
 * Guarantees: after an edit, what is open counts for `overlap`, and for what is kept of outcomes, as the new definition says, and what
 *   waits is judged by it; many open runs delay neither the edit nor what is fired. From when on the outcomes of a schedule count is
 *   kept with it. A pause by firelock opens an episode; what a person pauses is not told of any more; any other edit has the open
 *   episodes of the schedule looked at.
 * Transaction: that of the edit, under the row locks it has; what is left of many runs is marked or judged in slices.
 * If the process dies here: nothing of the edit is written; any instance does the slices that are left.
 */
import { isOutcomeWatched, watchAfterEdit } from '../../core/schedules/outcome-watch.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { markOpenRuns } from '../../store/runs/runs-of-edits.ts';
import { type JudgedOverlaps, judgeOverlapsNowOrSoon } from '../../store/runs/overlaps.ts';
import type { Edited } from './plan-before-update.ts';
import type { Instant } from '../../core/instant.ts';
import { deleteWatches, lockWatches, saveWatches } from '../../store/schedules/watches.ts';
import { BY_FIRELOCK } from '../../core/time/definition-change.ts';
import { type AlertCause, closeAlertsOf, lookAtAlertsOf, writeAlertEffects } from '../../store/alerts/alert-effects.ts';

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
