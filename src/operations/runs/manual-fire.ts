/**
 * Guarantees: one run per call, or per idempotency key; durable before the call is answered.
 * Transaction: one; the key and the run are written together.
 * If the process dies here: both are there or neither; the run is pending and unclaimed: any instance may claim it.
 */
import { hash } from 'node:crypto';
import type { Scope } from '../../core/access/scope.ts';
import { BodyTooLong, isTooLongWith } from '../../core/http/body-template.ts';
import { randomRunId, type Run } from '../../core/runs/run.ts';
import { boundsOf } from '../../core/runs/bounds.ts';
import { newRun, type OfSchedule, runOfSchedule } from '../../core/runs/new-run.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Instant } from '../../core/instant.ts';
import { wakeFor } from '../../runtime/loop/wake.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import { takeKeysUnlessTaken } from '../../store/runs/idempotency-keys.ts';
import { emitJudged, type JudgedOverlaps, judgeOverlapsNowOrSoon, workOf } from '../../store/runs/overlaps.ts';
import { recordRuns } from '../../store/runs/lock-and-save.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { noSchedule, OperationRefused } from '../operation-refused.ts';
import type { RunActionDeps } from './act-on-runs.ts';

interface ManualFireRequest {
  scheduleId: string;
  /** The client's own JSON text; null: the schedule's payload. */
  payload: string | null;
  key: string | null;
}

/** `isNew`: false for the run that the key made before. */
interface ManualFired {
  isNew: boolean;
  run: Run;
}

interface Decided extends ManualFired {
  /** For a schedule whose runs must not overlap. */
  judged?: JudgedOverlaps | undefined;
}

/**
 * Fires a schedule now, paused or not, as its `overlap` allows. The same key with the same body answers the run that it
 * made. @throws OperationRefused, BodyTooLong
 */
export async function fireManually(deps: RunActionDeps, request: ManualFireRequest): Promise<ManualFired> {
  const { judged, ...fired } = await deps.database.transaction((tx) => fireIn(tx, deps, request));
  if (fired.isNew) {
    const { queue, limitId } = fired.run;
    wakeFor(deps.wake, { toClaim: 1, toPull: queue !== null, toAdmit: limitId !== null });
  }
  if (judged) {
    emitJudged(deps.events, judged);
    wakeFor(deps.wake, workOf(judged));
  }
  return fired;
}

async function fireIn(tx: Transaction, deps: RunActionDeps, request: ManualFireRequest): Promise<Decided> {
  // Locked, so that a delete comes wholly before or wholly after, and that what may start is decided under its lock.
  const schedule = (await lockSchedules(tx, [request.scheduleId])).get(request.scheduleId);
  if (!schedule) throw noSchedule(request.scheduleId);
  const now = await databaseNow(tx);
  const id = randomRunId(now);
  const holder = await keyHolder(tx, schedule, request, id);
  if (holder && !holder.isOfThisBody)
    throw new OperationRefused(422, 'this Idempotency-Key was used with another body');
  if (holder) return { isNew: false, run: await recorded(tx, holder.runId, deps.scope) };
  if (schedule.definition.target.type === 'none')
    throw new OperationRefused(409, `schedule ${schedule.id} has no target: it only observes`);
  if (request.payload !== null && isTooLongWith(schedule.definition.target, request.payload)) throw new BodyTooLong();
  const scheduleId = schedule.id;
  deps.openRunCaps?.take([scheduleId]);
  const ofSchedule = runOfSchedule(schedule, deps.scopeShares);
  await recordRuns(tx, [manualRun(schedule, ofSchedule, request, { id, now })]);
  await deps.auditor?.note(tx, {
    ...{ action: 'schedule.fire', subject: scheduleId, scheduleId, detail: { runId: id } },
  });
  const guarded = schedule.definition.overlap !== 'allow';
  const judged = guarded ? await judgeOverlapsNowOrSoon(tx, [schedule.uid]) : undefined;
  return { isNew: true, run: await recorded(tx, id, deps.scope), judged };
}

/** The run that the key already stands for; null: none, and the key now stands for the new run. */
async function keyHolder(
  tx: Transaction,
  { uid }: Schedule,
  { key, payload }: ManualFireRequest,
  runId: string,
): Promise<{ runId: string; isOfThisBody: boolean } | null> {
  if (key === null) return null;
  const hashed = bodyHash(payload);
  const holder = (await takeKeysUnlessTaken(tx, uid, [{ key, bodyHash: hashed, runId }])).get(key);
  return holder ? { runId: holder.runId, isOfThisBody: holder.bodyHash === hashed.toString('hex') } : null;
}

function manualRun(
  schedule: Schedule,
  ofSchedule: OfSchedule,
  { payload, key }: ManualFireRequest,
  { id, now }: { id: string; now: Instant },
) {
  // If runs must not overlap, the same transaction judges them.
  const status = ofSchedule.overlapGuarded ? 'waiting' : 'pending';
  const bounds = boundsOf(schedule.definition.expect, now);
  const own = { id, scheduledFor: now, dueAt: now, ownPayload: payload, key, ...bounds };
  return newRun({ ...ofSchedule, ...own, trigger: 'manual', status }, now);
}

async function recorded(tx: Transaction, id: string, scope: Scope): Promise<Run> {
  const run = await findRun(tx, id, scope);
  if (!run) throw new Error(`run ${id} was recorded and is not there`);
  return run;
}

function bodyHash(payload: string | null): Buffer {
  return hash('sha256', payload ?? '', 'buffer');
}
