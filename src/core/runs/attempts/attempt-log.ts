import type { AttemptEntry } from './attempt.ts';
import type { Run } from '../run.ts';

/**
 * The whole log of a run: the recorded entries, and the one entry that is never recorded. A plain first-attempt success
 * (by far the most frequent attempt) and a worker's claim are visible in the run itself, and stored nowhere else.
 */
export function attemptLogOf(run: Run): AttemptEntry[] {
  const { attemptLog: recorded, handedOffAt, handoffStartedAt, claimedBy, attempts, queue } = run;
  // A worker's claim is its handoff, whatever happened before; for other runs, all attempts but the first are recorded.
  const isRecorded =
    queue === null
      ? recorded.length > 0 || attempts !== 1
      : recorded.some((entry) => entry.attempt === attempts);
  if (isRecorded || handedOffAt === null || handoffStartedAt === null || claimedBy === null)
    return [...recorded];
  return [
    ...recorded,
    {
      attempt: attempts,
      instanceId: claimedBy,
      startedAt: handoffStartedAt,
      finishedAt: handedOffAt,
      outcome: 'accepted',
      statusCode: run.result?.statusCode ?? null,
      error: null,
      recovery: false,
      lookup: null,
    },
  ];
}
