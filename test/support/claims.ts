import { randomUUID } from 'node:crypto';
import type { ClaimedRun } from '../../src/store/runs/claims/claimed-run.ts';
import type { EndedAttempt } from '../../src/flow/settle-queue.ts';
import type { AttemptSettlement } from '../../src/core/runs/attempts/settle-attempt.ts';

/** A claim as the store answers it, of a first attempt. */
export function claimedRun(given: Partial<ClaimedRun> = {}): ClaimedRun {
  return {
    id: randomUUID(),
    instanceId: 'a',
    scheduledFor: 0,
    scheduleUid: randomUUID(),
    scheduleVersion: 1,
    edition: null,
    scheduleId: 's',
    trigger: 'schedule',
    notifierId: null,
    lane: 'http http://127.0.0.1',
    priority: 1,
    dueAt: 0,
    attempt: 1,
    failures: 0,
    recoveries: 0,
    ownPayload: null,
    parentId: null,
    hasDependencies: false,
    isLimited: false,
    firstClaimedAt: 0,
    wasHandedOff: false,
    claimedAt: 0,
    latenessMs: null,
    recoveredAt: null,
    inDoubtUntil: null,
    lookups: 0,
    toBegin: false,
    confirm: false,
    ofDeleted: false,
    ...given,
  };
}

/** A first attempt's 2xx, of which nothing else has to be said. */
export function plainSuccess(claim: { runId: string; instanceId: string; at: number }): AttemptSettlement {
  const { runId, instanceId, at } = claim;
  return {
    runId,
    instanceId,
    attempt: 1,
    outcome: 'accepted',
    settlement: {
      status: 'succeeded',
      failures: 0,
      leaseSeconds: null,
      retryAt: null,
      doubt: null,
      error: null,
      executionId: null,
      statusCode: 204,
      body: null,
    },
    startedAt: at,
    finishedAt: at,
    latenessMs: 0,
    recovery: false,
    lookup: null,
    sent: true,
  };
}

/** An attempt that ended so, as the settler takes it. */
export function endedAttempt(
  outcome: AttemptSettlement,
  { onSettled = () => undefined, ...run }: Partial<EndedAttempt['run'] & Pick<EndedAttempt, 'onSettled'>> = {},
): EndedAttempt {
  const ofRun = { id: outcome.runId, scheduleId: 's', notifierId: null, firstClaimedAt: 0, isLimited: false, ...run };
  return { outcome, run: ofRun, onSettled, line: null, before: null, behind: null };
}
