/**
 * Guarantees: one run per call, or per idempotency key; durable before the call is answered.
 * Transaction: one; the key and the run are written together.
 * If the process dies here: both are there or neither; the run is pending, unclaimed, anybody's work.
 */
import { hash } from 'node:crypto';
import type { Run } from '../core/run.ts';
import type { Database } from '../store/database.ts';
import { recordManualFireUnlessKeyTaken } from '../store/manual-fires.ts';
import { findRun } from '../store/runs.ts';
import { databaseNow } from '../store/database-now.ts';
import { lockSchedules } from '../store/schedules.ts';
import type { TargetRegistry } from '../targets/registry.ts';

export interface ManualFireDeps {
  database: Database;
  targets: TargetRegistry;
  /** There is a run to claim. */
  wakeDispatch: () => void;
}

export interface ManualFireRequest {
  scheduleId: string;
  /** The client's own JSON text; null: the schedule's payload. */
  payload: string | null;
  key: string | null;
}

export type ManualFired =
  { kind: 'created' | 'existing'; run: Run } | { kind: 'noSuchSchedule' } | { kind: 'keyOfAnotherBody' };

/** Fires a schedule now, paused or not. The same key with the same body answers the run it made. */
export async function fireManually(deps: ManualFireDeps, request: ManualFireRequest): Promise<ManualFired> {
  const fired = await deps.database.transaction(async (tx): Promise<ManualFired> => {
    // Locked, so that a delete comes wholly before or wholly after.
    const schedule = (await lockSchedules(tx, [request.scheduleId])).get(request.scheduleId);
    if (!schedule) return { kind: 'noSuchSchedule' };
    const recorded = await recordManualFireUnlessKeyTaken(tx, {
      schedule,
      lane: deps.targets.laneOf(schedule.definition.target),
      at: await databaseNow(tx),
      payload: request.payload,
      key: request.key === null ? null : { value: request.key, bodyHash: bodyHash(request.payload) },
    });
    if ('conflict' in recorded) return { kind: 'keyOfAnotherBody' };
    const run = await findRun(tx, recorded.runId);
    if (!run) throw new Error(`run ${recorded.runId} was recorded and is not there`);
    return { kind: recorded.created ? 'created' : 'existing', run };
  });
  if (fired.kind === 'created') deps.wakeDispatch();
  return fired;
}

function bodyHash(payload: string | null): Buffer {
  return hash('sha256', payload ?? '', 'buffer');
}
