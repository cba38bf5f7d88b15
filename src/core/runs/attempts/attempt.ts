import type { Instant } from '../../instant.ts';
import type { AttemptError } from './outcome.ts';

export type AttemptOutcome = 'accepted' | 'acceptedLate' | 'rejected' | 'transient' | 'unknown' | 'blocked';

/** The target's answer to the lookup about an earlier attempt, before anything else was done. */
export const LOOKUP_ANSWERS = ['arrived', 'notArrived', 'unclear'] as const;
export type LookedUp = (typeof LOOKUP_ANSWERS)[number];

/** One attempt as history shows it. */
export interface AttemptEntry {
  attempt: number;
  instanceId: string;
  startedAt: Instant;
  finishedAt: Instant;
  outcome: AttemptOutcome;
  statusCode: number | null;
  error: AttemptError | null;
  recovery: boolean;
  /** `arrived`: this time nothing was sent, and the outcome is the target's answer. Null: the target was not asked. */
  lookup: LookedUp | null;
}
