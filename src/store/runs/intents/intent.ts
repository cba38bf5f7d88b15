import type { Instant } from '../../../core/instant.ts';
import type { AttemptError } from '../../../core/runs/attempts/outcome.ts';
import { plannedRunId, type RunTrigger } from '../../../core/runs/run.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';
import type { PlannedFire } from '../../../core/time/plan-due.ts';

/** One fire to be recorded. */
export interface Intent extends Omit<PlannedFire, 'trigger'> {
  id: string;
  scheduleUid: string;
  trigger: RunTrigger;
  /** The recording instance has a free slot for it and sends it itself: no second round trip. */
  claimed: boolean;
}

/** What a record says of a fire that a caller asked to skip; null: nothing. */
export function errorOfSkip({ why = null }: Pick<Intent, 'why'>): AttemptError | null {
  return why === null ? null : { kind: 'reported', message: why };
}

/** The record of a planned fire, but for which instance claims it. */
export function intentOf(scheduleUid: string, fire: PlannedFire): Omit<Intent, 'claimed'> {
  return { ...fire, scheduleUid, id: plannedRunId(scheduleUid, fire.scheduledFor) };
}

/** It stands for fires that were too late when they were planned. */
export function wasMissed({
  skipped,
  trigger,
  coalesced,
}: Pick<Intent, 'trigger' | 'coalesced'> & { skipped: string | null }): boolean {
  return (
    coalesced > 0 ||
    trigger === 'catchUp' ||
    (skipped !== null && skipped !== 'request' && skipped !== 'expired')
  );
}

/**
 * Where a schedule stands after its plan; the guard is what the fire-lock statement answered. There is no next occurrence where there is
 * no next fire, and only there; `plannedThrough` is the newest that this plan records, `lastFireAt` the newest that it fires.
 */
export interface Advance extends Pick<
  Schedule,
  'uid' | 'version' | 'nextOccurrenceAt' | 'nextFireAt' | 'plannedThrough' | 'lastFireAt'
> {
  lockedAt: Instant;
  /** Its runs have bounds, or expire; absent: they do not. */
  isBounded?: boolean;
  /** Some of its runs are observed; absent: none is. */
  observes?: boolean;
}

export interface Recorded {
  /** Schedules whose guard was still true; the others' locks were lost and nothing of them was written. */
  advanced: number;
  /** Whether this statement inserted the run with that id: with its claim, where one was asked for and the run does not wait. */
  inserted: (id: string) => boolean;
  /** Whether it inserted it as waiting, for its overlap to be judged. */
  waits: (id: string) => boolean;
  /** Whether it had waited too long by then, and so has no claim. */
  expired: (id: string) => boolean;
  /** When they were claimed. */
  claimedAt: Instant;
  /** Of runs that ended at once, as missed: how many effects there are to see to. */
  effects: number;
}
