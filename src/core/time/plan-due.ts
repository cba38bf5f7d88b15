import { type Instant, DAY_MS } from '../instant.ts';
import { beginByOf } from '../runs/bounds.ts';
import type { Timing } from '../timing/timing.ts';
import type { FireTimes } from './fire-times.ts';
import type { SkippedFire } from './skipped-fires.ts';

/** One run to record. */
export interface PlannedFire {
  scheduledFor: Instant;
  /** `scheduledFor` and its jitter. */
  dueAt: Instant;
  trigger: 'schedule' | 'catchUp';
  /** Not fired, because of the schedule's policy; the reason. */
  skipped: SkipReason | null;
  /** Of one that a caller asked to skip, in its words. */
  why?: string | null;
  /** How many other, missed fires it stands for, and the first of them. */
  coalesced: number;
  coalescedFrom: Instant | null;
}

/**
 * `missed`: too late, and the policy does not catch up; `limit`: older than the newest ones that are caught up;
 * `request`: a caller asked to skip it; `expired`: so long after it was due, no run of the schedule begins.
 */
export const SKIP_REASONS = ['missed', 'limit', 'request', 'expired'] as const;
export type SkipReason = (typeof SKIP_REASONS)[number];

export interface Plan {
  fires: PlannedFire[];
  /** Null: nothing left to fire. */
  nextOccurrenceAt: Instant | null;
  /** When that occurrence is due; at or before `now` if this plan is full: the next one goes on from there. */
  nextFireAt: Instant | null;
  /** The walk is not finished: `step` goes on after this plan, as of the same moment. */
  isPartial: boolean;
}

/** A grace below zero: every due fire counts as missed. */
type CatchUpPolicy = Pick<Timing, 'catchUp' | 'catchUpLimit' | 'graceSeconds'> & {
  expiresAfterSeconds?: number | null;
};

/** The moment of the plan, and the greatest age of a planned fire. */
export interface PlanningPeriod {
  now: Instant;
  /** An older fire leaves no run, since history no longer covers its time. */
  horizon: Instant;
  /** Nothing up to this occurrence is planned again, wherever the cursor stands; null: nothing has been planned. */
  plannedThrough: Instant | null;
  /** Each that a caller asked to skip gets a record of its own, however late, and does not count as missed; one that was made gets none. */
  skips?: ReadonlyMap<Instant, SkippedFire>;
}

export function horizonOf(now: Instant, retentionDays: number): Instant {
  return now - retentionDays * DAY_MS;
}

/**
 * A walk over all due occurrences of a schedule, from its stored next one. It can be done in steps, since a week of
 * missed seconds takes long; `now` stays the moment of its start, so that the whole walk is one decision.
 */
export interface Walk {
  /** Goes on until it is done (the plan) or `mayGoOn` answers false (null: call again). */
  step(mayGoOn: () => boolean): Plan | null;
}

/** The most that one commit writes for a schedule, apart from the missed fires that `all` makes. */
export const MAX_ON_TIME = 5_000;

/** No instance is more punctual than this. With a smaller grace, it would miss fires that are on time. */
const PUNCTUAL_MS = 1000;

/** A fire that is at most this late is on time. */
export function graceMsOf({ graceSeconds }: Pick<Timing, 'graceSeconds'>): number {
  return Math.max(graceSeconds * 1000, PUNCTUAL_MS);
}

interface Due {
  at: Instant;
  dueAt: Instant;
}

/**
 * Every fire that is on time is made. *Missed* fires have been due for longer than the grace: `skip`: they become one
 * skipped record, at the newest of them. `latest`: the newest of them fires late; if an on-time fire is due as well,
 * they fold into the oldest on-time one. `all`: at most `catchUpLimit` of the newest are made, oldest first; the
 * rest becomes one skipped record. Fires that a caller asked to skip take no part in this.
 */
export function walkDue(
  times: FireTimes,
  policy: CatchUpPolicy,
  firstOccurrence: Instant | null,
  { now, horizon, plannedThrough, skips }: PlanningPeriod,
): Walk {
  const graceMs = policy.graceSeconds < 0 ? -1 : graceMsOf(policy);
  const before = Math.max(horizon - 1, plannedThrough ?? -Infinity);
  let next = firstToPlan(times, firstOccurrence, before);
  let missed = missedOf(policy);
  let onTime: Due[] = [];
  let requested: PlannedFire[] = [];

  function planUpTo(nextOccurrenceAt: Instant | null, nextFireAt: Instant | null): Plan {
    const isPartial = nextFireAt !== null && nextFireAt <= now;
    const fires = inOrder(missed.settle(onTime), requested).map(asExpiredAt(now, policy));
    const plan = { fires, nextOccurrenceAt, nextFireAt, isPartial };
    [missed, onTime, requested] = [missedOf(policy), [], []];
    return plan;
  }

  return {
    step: (mayGoOn) => {
      while (next !== null) {
        const dueAt = times.dueAt(next);
        if (!Number.isFinite(dueAt)) throw new Error('it would fire at no moment that there is');
        if (dueAt > now || onTime.length === MAX_ON_TIME) return planUpTo(next, dueAt);
        if (!mayGoOn()) return null;
        const skip = skips?.get(next);
        if (skip) requested.push(...skippedFires({ at: next, dueAt }, skip));
        else if (now - dueAt > graceMs) missed.add({ at: next, dueAt });
        else onTime.push({ at: next, dueAt });
        next = following(times, next);
      }
      return planUpTo(null, null);
    },
  };
}

/** A stored cursor may stand on a day that a calendar has excluded since. */
function firstToPlan(times: FireTimes, first: Instant | null, before: Instant): Instant | null {
  if (first === null) return null;
  if (first <= before) return times.next(before);
  return times.excludedBy(first) === null ? first : times.next(first);
}

/** The newest moment that a plan fires; null: it fires nothing. */
export function lastFireOf({ fires }: Plan): Instant | null {
  return fires.findLast(({ skipped }) => skipped === null)?.scheduledFor ?? null;
}

export function following(times: Pick<FireTimes, 'next'>, from: Instant): Instant | null {
  const next = times.next(from);
  // Planning only steps forward, whatever the calendar answers: otherwise one bad zone rule would loop for ever.
  if (next !== null && next <= from) throw new Error(`the occurrence after ${from} is not after it (${next})`);
  return next;
}

interface Missed {
  add(due: Due): void;
  /** The records for missed and on-time fires, oldest first. */
  settle(onTime: readonly Due[]): PlannedFire[];
}

function missedOf({ catchUp, catchUpLimit }: CatchUpPolicy): Missed {
  if (catchUp === 'all') return firingNewest(catchUpLimit);
  let count = 0;
  let first: Due | undefined;
  let newest: Due | undefined;
  return {
    add: (due) => {
      count += 1;
      first ??= due;
      newest = due;
    },
    settle: (onTime) => {
      const [oldest, ...rest] = onTime.map((due) => plannedFire(due, 'schedule'));
      if (!first || !newest) return oldest ? [oldest, ...rest] : [];
      if (catchUp === 'skip') return [skip(newest, 'missed', count, first), ...(oldest ? [oldest, ...rest] : [])];
      if (!oldest) return [standingFor(plannedFire(newest, 'catchUp'), count - 1, first)];
      return [standingFor(oldest, count, first), ...rest];
    },
  };
}

function firingNewest(limit: number): Missed {
  let count = 0;
  let first: Due | undefined;
  /** A ring of the newest missed fires, one more than may fire: that one is the newest of those that do not. */
  const ring: Due[] = [];
  return {
    add: (due) => {
      first ??= due;
      ring[count % (limit + 1)] = due;
      count += 1;
    },
    settle: (onTime) => {
      const kept = Math.min(count, limit + 1);
      const newest = Array.from({ length: kept }, (_, i) => ring[(count - kept + i) % (limit + 1)]).flatMap(
        (due) => due ?? [],
      );
      const [beyond] = count > limit ? newest.splice(0, 1) : [];
      return [
        ...(beyond && first ? [skip(beyond, 'limit', count - limit, first)] : []),
        ...newest.map((due) => plannedFire(due, 'catchUp')),
        ...onTime.map((due) => plannedFire(due, 'schedule')),
      ];
    },
  };
}

/** A fire that has expired is recorded as skipped: it does not count for overlap. */
function asExpiredAt(now: Instant, { expiresAfterSeconds = null }: CatchUpPolicy) {
  return (fire: PlannedFire): PlannedFire => {
    const expiresAt = beginByOf({ expiresAfterSeconds }, fire.dueAt);
    const isExpired = expiresAt !== null && expiresAt <= now && fire.skipped === null;
    return isExpired ? { ...fire, skipped: 'expired' } : fire;
  };
}

/** A plan ends with the newest fire that it records. */
function inOrder(fires: PlannedFire[], requested: readonly PlannedFire[]): PlannedFire[] {
  if (requested.length === 0) return fires;
  return [...fires, ...requested].sort((a, b) => a.scheduledFor - b.scheduledFor);
}

/** The record of a fire that is not to be made; none where it was made. */
export function skippedFires(due: Due, { made, reason }: SkippedFire): PlannedFire[] {
  return made ? [] : [{ ...plannedFire(due, 'schedule'), skipped: 'request', why: reason }];
}

/** A fire that stands for no other. */
export function plannedFire({ at, dueAt }: Due, trigger: PlannedFire['trigger']): PlannedFire {
  return { scheduledFor: at, dueAt, trigger, skipped: null, coalesced: 0, coalescedFrom: null };
}

/** One record for `count` fires, itself included. */
function skip(newest: Due, reason: SkipReason, count: number, first: Due): PlannedFire {
  return { ...standingFor(plannedFire(newest, 'catchUp'), count - 1, first), skipped: reason };
}

function standingFor(one: PlannedFire, others: number, first: Due): PlannedFire {
  return { ...one, coalesced: others, coalescedFrom: others > 0 ? first.at : null };
}
