import type { AttemptSettlement } from '../../src/core/runs/attempts/settle-attempt.ts';

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
