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
  /** When to look whether it has become late; null: it cannot. An episode that is open is looked at by itself. */
  lookAt: Instant | null;
}

export function isOutcomeWatched({
  pauseAfterFailures,
  successWithinSeconds,
}: Pick<Definition, 'pauseAfterFailures' | 'successWithinSeconds'>): boolean {
  return pauseAfterFailures !== null || successWithinSeconds !== null;
}

/** A success that came in time may be written a moment later. */
const ALLOWANCE_MS = 1_000;
/** A day of history may be dropped a day later: by then, a success in it has been seen. */
const MAX_LOOK_MS = 12 * 3_600_000;

/**
 * Since when a schedule is late, given its last success; null: it is not. `isResting`: it is paused, or nothing is left for it to fire;
 * only an edit changes that, and has a look taken again.
 */
export function judgeLateness(
  watch: Omit<OutcomeWatch, 'lookAt'>,
  now: Instant,
  isResting = false,
): { lookAt: Instant | null; lateSince: Instant | null } {
  const deadline = deadlineOf(watch);
  if (deadline === null) return { lookAt: null, lateSince: null };
  const isLate = !isResting && now >= deadline + ALLOWANCE_MS;
  const isToCome = !isResting && !isLate;
  return {
    lookAt: Math.min(isToCome ? deadline + ALLOWANCE_MS : Infinity, now + MAX_LOOK_MS),
    lateSince: isLate ? deadline : null,
  };
}

/** Null: it has none. */
function deadlineOf({
  successWithinSeconds,
  successSince,
  lastSuccessAt,
}: Omit<OutcomeWatch, 'lookAt'>): Instant | null {
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
  };
  if (isResting || successWithinSeconds === null) return watch;
  const { lookAt, lateSince } = judgeLateness(watch, at);
  return { ...watch, lookAt: lateSince === null ? lookAt : at };
}

/** Neither is ever late. */
function rests({ status }: Stands): boolean {
  return status === 'paused' || status === 'ended';
}
