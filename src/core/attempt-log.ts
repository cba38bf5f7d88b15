import type { Instant } from './instant.ts';
import type { AttemptError } from './outcome.ts';
import type { Run } from './run.ts';

export type AttemptOutcome = 'accepted' | 'acceptedLate' | 'rejected' | 'transient' | 'unknown' | 'blocked';

/** What the target said of an earlier attempt when it was asked, before anything else was done. */
export const LOOKUP_ANSWERS = ['arrived', 'notArrived', 'unclear'] as const;
export type LookedUp = (typeof LOOKUP_ANSWERS)[number];

/** One attempt as history tells it. */
export interface AttemptEntry {
  attempt: number;
  instanceId: string;
  startedAt: Instant;
  finishedAt: Instant;
  outcome: AttemptOutcome;
  statusCode: number | null;
  error: AttemptError | null;
  recovery: boolean;
  /** `arrived`: nothing was sent this time, the outcome is what the target said. Null: it was not asked. */
  lookup: LookedUp | null;
}

/**
 * The whole log of a run: what was recorded, and the one entry that never is. A plain first-attempt success, by far the
 * most frequent attempt, and a worker's claim, stand in their run and nowhere else.
 */
export function attemptLogOf(run: Run, recorded: readonly AttemptEntry[]): AttemptEntry[] {
  const { handedOffAt, handoffStartedAt, claimedBy, attempts, queue } = run;
  // A worker's claim is its handoff, whatever was before; of others all but the first are recorded.
  const isTold =
    queue === null
      ? recorded.length > 0 || attempts !== 1
      : recorded.some((entry) => entry.attempt === attempts);
  if (isTold || handedOffAt === null || handoffStartedAt === null || claimedBy === null) return [...recorded];
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
