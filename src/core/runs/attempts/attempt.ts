import type { Instant } from '../../instant.ts';
import type { AttemptError } from './outcome.ts';

export type AttemptOutcome = 'accepted' | 'acceptedLate' | 'rejected' | 'transient' | 'unknown' | 'blocked';

/** What the target said of an earlier attempt when it was asked, before anything else was done. */
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
  /** `arrived`: nothing was sent this time, the outcome is what the target said. Null: it was not asked. */
  lookup: LookedUp | null;
}
