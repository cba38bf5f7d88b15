import type { BoundVerdict } from '../../../core/runs/bounds.ts';
import { ALERT_OF_BOUND } from '../../../core/alerts/alert.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { type AlertCause, healOpenAlerts, writeAlertEffects } from '../../alerts/alert-effects.ts';

export interface JudgedRun {
  run: Pick<RunRecord, 'id' | 'status' | 'scheduleUid' | 'scheduleVersion' | 'scheduleId'>;
  verdict: BoundVerdict;
}

/**
 * Writes what these runs have made of their bounds as effects, in the transaction that judges them: a broken bound opens an episode, and
 * one that was kept heals the episode that is open. Answers how many effects it wrote.
 */
export async function writeBoundEffects(tx: Transaction, judged: readonly JudgedRun[]): Promise<number> {
  const broken = judged.filter(({ verdict }) => !verdict.isKept);
  const kept = judged.filter(({ verdict }) => verdict.isKept);
  const healed = kept.map(({ run, verdict }) => ({
    schedule: scheduleOf(run),
    alertKinds: [ALERT_OF_BOUND[verdict.bound]],
    at: verdict.at,
  }));
  return (await writeAlertEffects(tx, broken.map(causeOf))) + (await healOpenAlerts(tx, healed));
}

function causeOf({ run, verdict: { bound, at } }: JudgedRun): AlertCause {
  const { id: runId, status } = run;
  return { kind: 'breaks', alertKind: ALERT_OF_BOUND[bound], schedule: scheduleOf(run), runId, status, at };
}

function scheduleOf({ scheduleUid: uid, scheduleId: id, scheduleVersion: version }: JudgedRun['run']) {
  return { uid, id, version };
}
