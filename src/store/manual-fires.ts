import { and, eq } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import { randomRunId } from '../core/run.ts';
import { PRIORITY_RANK, type Schedule } from '../core/schedule.ts';
import type { Executor } from './executor.ts';
import { runKeys, runs } from './schema.ts';

export interface ManualFire {
  schedule: Schedule;
  lane: string;
  at: Instant;
  /** The client's own JSON text; null: the schedule's. */
  payload: string | null;
  key: { value: string; bodyHash: Buffer } | null;
}

/** What a key already stands for, or the run just recorded. */
export type ManualFireResult = { runId: string; created: boolean } | { conflict: true };

/** Records a run beside the schedule's own fires; a key that is taken answers with its run, whoever comes second. */
export async function recordManualFireUnlessKeyTaken(
  tx: Executor,
  fire: ManualFire,
): Promise<ManualFireResult> {
  const { schedule, lane, at, payload, key } = fire;
  const runId = randomRunId(at);
  if (key) {
    const taken = await takeKey(tx, schedule.uid, key, runId);
    if (taken) return taken;
  }
  await tx.insert(runs).values({
    id: runId,
    scheduledFor: at,
    scheduleUid: schedule.uid,
    scheduleVersion: schedule.version,
    scheduleId: schedule.id,
    trigger: 'manual',
    // Where runs must not overlap it is for judgeOverlapsUnderLock, in the same transaction.
    status: schedule.definition.overlap === 'allow' ? 'pending' : 'waiting',
    overlapGuarded: schedule.definition.overlap !== 'allow',
    lane,
    priority: PRIORITY_RANK[schedule.definition.priority],
    dueAt: at,
    attempts: 0,
    ownPayload: payload,
    key: key?.value ?? null,
    createdAt: at,
    updatedAt: at,
  });
  return { runId, created: true };
}

async function takeKey(
  tx: Executor,
  scope: string,
  key: { value: string; bodyHash: Buffer },
  runId: string,
): Promise<ManualFireResult | null> {
  const inserted = await tx
    .insert(runKeys)
    .values({ scope, key: key.value, bodyHash: key.bodyHash, runId })
    .onConflictDoNothing()
    .returning({ runId: runKeys.runId });
  if (inserted.length > 0) return null;
  const [holder] = await tx
    .select()
    .from(runKeys)
    .where(and(eq(runKeys.scope, scope), eq(runKeys.key, key.value)));
  if (!holder?.bodyHash.equals(key.bodyHash)) return { conflict: true };
  return { runId: holder.runId, created: false };
}
