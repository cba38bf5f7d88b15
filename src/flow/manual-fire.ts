/**
 * Guarantees: one run per call, or per idempotency key; durable before the call is answered.
 * Transaction: one; the key and the run are written together.
 * If the process dies here: both are there or neither; the run is pending, unclaimed, anybody's work.
 */
import { hash } from 'node:crypto';
import type { Run } from '../core/run.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Database } from '../store/database.ts';
import { type Aftermath, NO_AFTERMATH } from '../store/followers.ts';
import { recordManualFireUnlessKeyTaken } from '../store/manual-fires.ts';
import { findRun } from '../store/runs.ts';
import { databaseNow } from '../store/database-now.ts';
import { type Judged, judgeOverlapsUnderLock } from '../store/overlaps.ts';
import { lockSchedules } from '../store/schedules.ts';
import type { TargetRegistry } from '../targets/registry.ts';
import { aftermathOfJudged, tellJudged } from './overlap.ts';

export interface ManualFireDeps {
  database: Database;
  events: EventBus;
  targets: TargetRegistry;
  /** Sees to what the ends of runs brought about. */
  followUp: (aftermath: Aftermath) => void;
}

export interface ManualFireRequest {
  scheduleId: string;
  /** The client's own JSON text; null: the schedule's payload. */
  payload: string | null;
  key: string | null;
}

export type ManualFired =
  { kind: 'created' | 'existing'; run: Run } | { kind: 'noSuchSchedule' } | { kind: 'keyOfAnotherBody' };

interface Decided {
  fired: ManualFired;
  /** Where runs of the schedule must not overlap. */
  judged?: Judged | undefined;
}

/** Fires a schedule now, paused or not, as its `overlap` allows. The same key with the same body answers the run it made. */
export async function fireManually(deps: ManualFireDeps, request: ManualFireRequest): Promise<ManualFired> {
  const { fired, judged } = await deps.database.transaction(async (tx): Promise<Decided> => {
    // Locked, so that a delete comes wholly before or wholly after, and that what may start is decided under its lock.
    const schedule = (await lockSchedules(tx, [request.scheduleId])).get(request.scheduleId);
    if (!schedule) return { fired: { kind: 'noSuchSchedule' } };
    const recorded = await recordManualFireUnlessKeyTaken(tx, {
      schedule,
      lane: deps.targets.laneOf(schedule.definition.target),
      at: await databaseNow(tx),
      payload: request.payload,
      key: request.key === null ? null : { value: request.key, bodyHash: bodyHash(request.payload) },
    });
    if ('conflict' in recorded) return { fired: { kind: 'keyOfAnotherBody' } };
    const guarded = recorded.created && schedule.definition.overlap !== 'allow';
    const judged = guarded ? await judgeOverlapsUnderLock(tx, [schedule.uid]) : undefined;
    const run = await findRun(tx, recorded.runId);
    if (!run) throw new Error(`run ${recorded.runId} was recorded and is not there`);
    return { fired: { kind: recorded.created ? 'created' : 'existing', run }, judged };
  });
  if (fired.kind === 'created')
    deps.followUp({ ...NO_AFTERMATH, toClaim: 1, toPull: fired.run.queue !== null });
  if (judged) {
    tellJudged(deps.events, judged);
    deps.followUp(aftermathOfJudged(judged));
  }
  return fired;
}

function bodyHash(payload: string | null): Buffer {
  return hash('sha256', payload ?? '', 'buffer');
}
