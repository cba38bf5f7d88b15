import type { z } from 'zod';
import type { AttemptEntry } from '../../core/runs/attempts/attempt.ts';
import { isoInstant, isoOrNull } from '../../core/instant.ts';
import { type Run, attemptLogOf, runNameOf } from '../../core/runs/run.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import type { run, wholeRun } from './schemas.ts';
import { answerTarget } from '../targets/answers.ts';

// eslint-disable-next-line max-lines-per-function -- one line for each field
export function answerRun(stored: Run): z.output<typeof run> {
  return {
    id: stored.id,
    name: runNameOf(stored),
    scheduleId: stored.scheduleId,
    scheduleVersion: stored.scheduleVersion,
    scheduledFor: isoInstant(stored.scheduledFor),
    trigger: stored.trigger,
    status: stored.status,
    reason: stored.reason,
    attempts: stored.attempts,
    failures: stored.failures,
    recoveries: stored.recoveries,
    lostAt: isoOrNull(stored.lostAt),
    inDoubtUntil: isoOrNull(stored.inDoubtUntil),
    nextAttemptAt: isoOrNull(stored.nextAttemptAt),
    expiresAt: isoOrNull(stored.beginBy),
    coalesced: stored.coalesced,
    coalescedFrom: isoOrNull(stored.coalescedFrom),
    claimedBy: stored.claimedBy,
    claimedAt: isoOrNull(stored.claimedAt),
    handoffStartedAt: isoOrNull(stored.handoffStartedAt),
    handedOffAt: isoOrNull(stored.handedOffAt),
    finishedAt: isoOrNull(stored.finishedAt),
    latenessMs: stored.latenessMs,
    executionId: stored.executionId,
    result: stored.result,
    error: stored.error,
    key: stored.key,
    batchId: stored.batchId,
    ref: stored.ref,
    labels: { ...stored.labels },
    payload: rawJsonOrNull(stored.payload),
    payloadFrom: stored.payloadFrom,
    priority: stored.priority,
    limit: stored.limitId,
    dependsOn: [...stored.dependsOn],
    dependents: [...stored.dependents],
    parentRunId: stored.parentRunId,
    notifierId: stored.notifierId,
    queue: stored.queue,
    workerId: stored.workerId,
    ...awaited(stored),
    progress: stored.progress,
    unmet: [...stored.unmet],
    unmetReason: stored.unmetReason,
    observed: stored.observed,
    createdAt: isoInstant(stored.createdAt),
    updatedAt: isoInstant(stored.updatedAt),
  };
}

export function answerWholeRun(
  stored: Run,
  { target }: { target: HandoffTarget | null },
): z.output<typeof wholeRun> {
  const attemptLog = attemptLogOf(stored).map(answerAttempt);
  return { ...answerRun(stored), target: target && answerHandoffTarget(target), attemptLog };
}

/** Mail is what a notifier says of itself. */
function answerHandoffTarget(target: HandoffTarget) {
  return target.type === 'email' ? null : answerTarget(target);
}

/** Until when a heartbeat or an end must come, from the worker or from the job that the target started. */
function awaited({ status, observed, queue, expiresAt }: Run) {
  const until = status === 'running' || observed ? isoOrNull(expiresAt) : null;
  return { leaseUntil: queue === null ? null : until, completionDueAt: queue === null ? until : null };
}

function answerAttempt(entry: AttemptEntry): z.output<typeof wholeRun>['attemptLog'][number] {
  const { attempt, instanceId, startedAt, finishedAt, outcome, statusCode, error, recovery, lookup } = entry;
  return {
    attempt,
    instanceId,
    startedAt: isoInstant(startedAt),
    finishedAt: isoInstant(finishedAt),
    outcome,
    ...(statusCode === null ? {} : { statusCode }),
    ...(error === null ? {} : { error }),
    recovery,
    ...(lookup === null ? {} : { lookup }),
  };
}
