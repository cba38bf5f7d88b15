import type { Instant } from '../instant.ts';
import type { CronTimes } from './cron.ts';

/** A fire at most this late when planned is on time; later ones are *missed*. */
export const GRACE_MS = 60_000;

/** One run to be recorded. */
export interface PlannedFire {
  scheduledFor: Instant;
  trigger: 'schedule' | 'catchUp';
  /** How many other, missed fire times it stands for, and the first of them. */
  coalesced: number;
  coalescedFrom: Instant | null;
}

export interface Plan {
  fires: PlannedFire[];
  /** Null: nothing left to fire. */
  nextOccurrenceAt: Instant | null;
}

/**
 * The walk over all occurrences of a schedule that are due, from its stored next one. It can be made in steps, since a
 * week of missed seconds takes long; `now` stays that of its start, so that the whole walk is one decision.
 */
export interface Walk {
  /** Goes on until it is done (the plan) or `mayGoOn` says no (null: call again). */
  step(mayGoOn: () => boolean): Plan | null;
}

/**
 * Missed fires of one outage become one: the newest of them fires late (`catchUp`), or, where an on-time fire is due as
 * well, they fold into the oldest on-time one. What is on time always fires, each of them.
 */
export function walkDue(times: CronTimes, firstDue: Instant, now: Instant): Walk {
  const onTime: Instant[] = [];
  const missed = { count: 0, first: firstDue, newest: firstDue };
  let next: Instant | null = firstDue;

  return {
    step: (mayGoOn) => {
      while (next !== null && next <= now) {
        if (!mayGoOn()) return null;
        if (now - next > GRACE_MS) {
          missed.count += 1;
          missed.newest = next;
        } else {
          onTime.push(next);
        }
        next = following(times, next);
      }
      return { fires: fold(onTime, missed), nextOccurrenceAt: next };
    },
  };
}

export function following(times: CronTimes, from: Instant): Instant | null {
  const next = times.next(from);
  // Whatever the calendar answers, planning only steps forward: otherwise one bad zone rule would spin for ever.
  if (next !== null && next <= from)
    throw new Error(`the occurrence after ${from} is not after it (${next})`);
  return next;
}

function fold(onTime: Instant[], missed: { count: number; first: Instant; newest: Instant }): PlannedFire[] {
  const [oldest, ...rest] = onTime;
  if (oldest === undefined) {
    if (missed.count === 0) return [];
    return [fire(missed.newest, 'catchUp', missed.count - 1, missed.first)];
  }
  return [
    fire(oldest, 'schedule', missed.count, missed.first),
    ...rest.map((at) => fire(at, 'schedule', 0, at)),
  ];
}

function fire(
  scheduledFor: Instant,
  trigger: PlannedFire['trigger'],
  coalesced: number,
  first: Instant,
): PlannedFire {
  return { scheduledFor, trigger, coalesced, coalescedFrom: coalesced > 0 ? first : null };
}
