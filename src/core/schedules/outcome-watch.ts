import type { Instant } from '../instant.ts';
import type { Definition, Schedule } from './schedule.ts';

/** The stored state of a schedule that has `pauseAfterFailures` or `successWithinSeconds`. */
export interface OutcomeWatch {
  scheduleUid: string;
  pauseAfterFailures: number | null;
  /** Failures that ended before this moment do not count. */
  failuresSince: Instant;
  successWithinSeconds: number | null;
  /** The time without a success counts from here, or from the last success if that came later. */
  successSince: Instant;
  /** The newest success that was found so far; null: none since `successSince`. */
  lastSuccessAt: Instant | null;
  /** When to look for a success again; null: it cannot become late. */
  lookAt: Instant | null;
  lateSince: Instant | null;
}

export function isOutcomeWatched({
  pauseAfterFailures,
  successWithinSeconds,
}: Pick<Definition, 'pauseAfterFailures' | 'successWithinSeconds'>): boolean {
  return pauseAfterFailures !== null || successWithinSeconds !== null;
}

/** A success that came in time may be written a moment later. */
const ALLOWANCE_MS = 1_000;
/**
 * A success of a late schedule has an effect, which has it looked at. Only a success that was being written when the schedule was found
 * late has none: by then it is written. Later looks are there for what should not happen.
 */
const STRAGGLERS_MS = 20_000;
const LATE_LOOK_MS = 600_000;
/** A day of history may be dropped a day later: by then, a success in it has been seen. */
const MAX_LOOK_MS = 12 * 3_600_000;

/**
 * Whether a schedule is late, given its last success. An episode begins when the time is up, and ends with a success. A success that was
 * found only after the time was up again ends one episode and begins another, so `begins` may be true although it was late before.
 * `isResting`: it is paused, or nothing is left for it to fire; only an edit changes that, and has a look taken again.
 */
export function judgeLateness(
  watch: OutcomeWatch,
  now: Instant,
  isResting = false,
): Pick<OutcomeWatch, 'lookAt' | 'lateSince'> & { begins: boolean } {
  const deadline = deadlineOf(watch);
  if (deadline === null) return { lookAt: null, lateSince: null, begins: false };
  if (isResting) return { lookAt: now + MAX_LOOK_MS, lateSince: null, begins: false };
  if (now < deadline + ALLOWANCE_MS) {
    return {
      lookAt: Math.min(deadline + ALLOWANCE_MS, now + MAX_LOOK_MS),
      lateSince: null,
      begins: false,
    };
  }
  const begins = watch.lateSince === null || deadline > watch.lateSince;
  return { lookAt: now + (begins ? STRAGGLERS_MS : LATE_LOOK_MS), lateSince: deadline, begins };
}

/** Null: it has none. */
function deadlineOf({ successWithinSeconds, successSince, lastSuccessAt }: OutcomeWatch): Instant | null {
  if (successWithinSeconds === null) return null;
  return Math.max(successSince, lastSuccessAt ?? successSince) + successWithinSeconds * 1000;
}

type Stands = Pick<Schedule, 'uid' | 'definition' | 'status'>;

/**
 * The state to store after an edit; null: none. Failures count from the moment at which the schedule was enabled, or
 * got `pauseAfterFailures`; the time without a success counts from the moment at which it was resumed, or got
 * `successWithinSeconds`. Resumed means that it became active, also after it had ended.
 */
export function watchAfterEdit(
  known: OutcomeWatch | null,
  { before, after, at }: { before: Stands | null; after: Stands; at: Instant },
): OutcomeWatch | null {
  const { definition } = after;
  if (!isOutcomeWatched(definition)) return null;
  const { pauseAfterFailures, successWithinSeconds } = definition;
  const stayed = before !== null && (before.definition.enabled || !definition.enabled);
  const failuresGoOn = stayed && typeof known?.pauseAfterFailures === 'number';
  const isResting = rests(after);
  const rested = before !== null && rests(before);
  const successGoesOn = !rested && typeof known?.successWithinSeconds === 'number';
  const watch: OutcomeWatch = {
    scheduleUid: after.uid,
    pauseAfterFailures,
    failuresSince: failuresGoOn ? known.failuresSince : at,
    successWithinSeconds,
    successSince: successGoesOn ? known.successSince : at,
    lastSuccessAt: successGoesOn ? known.lastSuccessAt : null,
    lookAt: null,
    lateSince: null,
  };
  if (isResting || successWithinSeconds === null) return watch;
  // Under another limit it may not be late any more. If it still is, that is no new episode.
  const isLate = successGoesOn && known.lateSince !== null;
  const { lookAt, lateSince } = judgeLateness(watch, at);
  return { ...watch, lookAt: lateSince === null ? lookAt : at, lateSince: isLate ? lateSince : null };
}

/** Neither is ever late. */
function rests({ status }: Stands): boolean {
  return status === 'paused' || status === 'ended';
}
