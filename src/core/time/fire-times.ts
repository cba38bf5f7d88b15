import { hash } from 'node:crypto';
import { type Instant, LATEST } from '../instant.ts';
import { plannedRunName } from '../runs/run.ts';
import type { Identity, Timing } from '../timing/timing.ts';
import { type Calendars, type Exclusion, exclusionOf, NO_CALENDARS } from '../exclusions/exclusion.ts';
import { type CronTimes, cronTimes } from '../cron/cron.ts';
import { localTime } from '../zones/zone.ts';
import { expressionsOf, mayHash } from '../cron/cron-fields.ts';
import { type DayMove, type DayTimes, dayTimes, earliestOf, hasDayRule } from '../days/day-times.ts';
import { keptDateOf, keptFires } from '../days/kept-fires.ts';

/** When a schedule fires: pure functions of its timing, and of the versions of its calendars. */
export interface FireTimes {
  /** The next occurrence strictly after an instant, within `startAt` and `endAt`, on a day that is not excluded. Null: never again. */
  next(after: Instant): Instant | null;
  /** The same, on any day. */
  nextOnAnyDay(after: Instant): Instant | null;
  /** What excludes an occurrence: an entry of `exclude.dates`, a weekday, or the id of a calendar. Null: nothing. */
  excludedBy(occurrence: Instant): string | null;
  /** When an occurrence is due: its moment plus its jitter; before the next occurrence. */
  dueAt(occurrence: Instant): Instant;
  /** What a change of the zone's offset did to it, or from which day it was moved. */
  noteOf(occurrence: Instant): string | null;
  /** From, or to, which day it was moved; null: to none. */
  moveOf(occurrence: Instant): DayMove | null;
}

/**
 * An `after` schedule has no fire times of its own. `calendars` has the history of each calendar that the timing names.
 * @throws CronError; Error where a history is missing
 */
export function fireTimes(timing: Timing, identity: Identity, calendars: Calendars = NO_CALENDARS): FireTimes {
  const exclusion = exclusionOf(timing, calendars);
  if (hasDayRule(timing)) return dayRuledTimes(timing, identity, exclusion);
  const { jitterSeconds } = timing;
  const times = within(timing, kindOf(timing, identity));
  return {
    next: exclusion === null ? (after) => times.next(after) : (after) => nextFree(times, exclusion, after),
    nextOnAnyDay: (after) => times.next(after),
    excludedBy: (occurrence) => exclusion?.reasonAt(occurrence) ?? null,
    // Bounded by the next occurrence on any day: so an edit of a calendar does not change a fire's jitter.
    dueAt: (occurrence) =>
      jitterSeconds === 0
        ? occurrence
        : occurrence + jitterMs(identity.id, occurrence, jitterSeconds, times.next(occurrence)),
    noteOf: (occurrence) => times.noteOf(occurrence),
    moveOf: () => null,
  };
}

/** With `every`, `pick` or `onExcluded`, or where an edit keeps what was decided for some dates. */
function dayRuledTimes(timing: Timing, identity: Identity, exclusion: Exclusion | null): FireTimes {
  const { jitterSeconds, kept } = timing;
  const { fires, onAnyDay, days } = dayTimesOf(timing, identity, exclusion);
  const own = within(timing, fires);
  const left = kept === undefined ? null : within(timing, keptFires(kept));
  const free: CronTimes = {
    next: (after) => {
      if (exclusion !== null && days === null) return nextFree(own, exclusion, after);
      const next = own.next(after);
      return next !== null && next <= LATEST ? next : null;
    },
    noteOf: (at) => own.noteOf(at),
  };
  const times = left === null ? free : earliestOf(free, left);
  const all = left === null ? within(timing, onAnyDay) : earliestOf(within(timing, onAnyDay), left);
  const moveOf = (at: Instant): DayMove | null => {
    const from = kept === undefined || free.next(at - 1) === at ? null : keptDateOf(kept, at);
    if (from !== null && from.date !== localTime(at, timing.timezone).slice(0, 10))
      return { from: from.date, to: null, because: from.reason };
    return days?.moveOf(at) ?? null;
  };
  return {
    next: (after) => times.next(after),
    nextOnAnyDay: (after) => all.next(after),
    excludedBy: (at) => {
      if (left?.next(at - 1) === at) return null;
      return days === null ? (exclusion?.reasonAt(at) ?? null) : days.excludedBy(at);
    },
    dueAt: (at) => (jitterSeconds === 0 ? at : at + jitterMs(identity.id, at, jitterSeconds, all.next(at))),
    noteOf: (at) => {
      const move = moveOf(at);
      const moved = move?.from ? `moved from ${move.from} (${move.because})` : null;
      return [moved, times.noteOf(at)].filter((note) => note !== null).join(', ') || null;
    },
    moveOf,
  };
}

/** Also of an interval, or of one moment, where an edit keeps dates of the expression before. */
function dayTimesOf(timing: Timing, identity: Identity, exclusion: Exclusion | null): DayTimes {
  const { cron } = timing;
  if (cron !== null) return dayTimes(timing, { ...identity, cron, exclusion });
  const fires = kindOf(timing, identity);
  return { fires, onAnyDay: fires, days: null, moved: null, localTimes: [], picked: null, late: [] };
}

/** Steps over a run of excluded days at once: occurrences on them cost nothing. Occurrences after 2100 count as never. */
function nextFree(times: CronTimes, exclusion: Exclusion, after: Instant): Instant | null {
  let at = times.next(after);
  while (at !== null && at <= LATEST) {
    const free = exclusion.freeFrom(at);
    if (free === at) return at;
    at = times.next(free - 1);
  }
  return null;
}

/** Whether two schedules of one timing can fire at different times. */
export function dependsOnIdentity({ cron, everySeconds, startAt, ...timing }: Timing): boolean {
  // Dates are judged by what calendars said since the schedule is there.
  if (timing.jitterSeconds > 0 || timing.onExcluded !== 'skip' || timing.pick !== null) return true;
  if (cron === null) return everySeconds !== null && startAt === null;
  return mayHash(cron);
}

/** The highest cost of one `next`, relative to a single expression: loops let other work run sooner if it costs more. */
export function costOf(timing: Timing): number {
  const expressions = timing.cron === null ? 1 : expressionsOf(timing.cron).length;
  return hasDayRule(timing) ? expressions * COST_OF_DAYS : expressions;
}

const COST_OF_DAYS = 10;

/** The newest occurrence in (after, until], by bisection: the number of occurrences in between does not matter. */
export function lastBetween(times: Pick<FireTimes, 'next'>, after: Instant, until: Instant): Instant | null {
  let newest = times.next(after);
  if (newest === null || newest > until) return null;
  for (let beyond = until; newest < beyond - 1;) {
    const middle: Instant = Math.floor((newest + beyond) / 2);
    const next = times.next(middle);
    if (next !== null && next <= until) newest = next;
    else beyond = middle;
  }
  return newest;
}

function kindOf(timing: Timing, { id, createdAt }: Identity): CronTimes {
  const { cron, everySeconds, at, timezone, startAt } = timing;
  if (cron !== null) return cronTimes(cron, timezone, id);
  if (everySeconds !== null) return interval(startAt, createdAt, everySeconds * 1000);
  if (at !== null) return { next: (after) => (after < at ? at : null), noteOf: () => null };
  return { next: () => null, noteOf: () => null };
}

/**
 * The anchor is `startAt`, at which it begins to fire; without it, the creation, one interval before the first fire.
 * The n-th fire is at the anchor + n intervals, whatever happened meanwhile, so it never drifts.
 */
function interval(startAt: Instant | null, createdAt: Instant, everyMs: number): CronTimes {
  const first = startAt ?? createdAt + everyMs;
  return {
    next: (after) => (after < first ? first : first + (Math.floor((after - first) / everyMs) + 1) * everyMs),
    noteOf: () => null,
  };
}

function within({ startAt, endAt }: Timing, times: CronTimes): CronTimes {
  if (startAt === null && endAt === null) return times;
  const first = startAt === null ? -Infinity : startAt - 1;
  const end = endAt ?? Infinity;
  return {
    next: (after) => {
      const next = times.next(Math.max(after, first));
      return next !== null && next < end ? next : null;
    },
    noteOf: (occurrence) => times.noteOf(occurrence),
  };
}

/**
 * A delay of 0 … `jitterSeconds`, the same on every call: SHA-256 of the run name (`scheduleId@scheduledFor`), modulo the range.
 * Shorter if the next fire would come first, so that fires keep their order.
 */
function jitterMs(id: string, occurrence: Instant, jitterSeconds: number, following: Instant | null): number {
  const room = following === null ? Infinity : following - occurrence;
  const range = Math.min(jitterSeconds * 1000 + 1, room);
  const digest = hash('sha256', plannedRunName(id, occurrence), 'hex');
  return parseInt(digest.slice(0, 12), 16) % range;
}
