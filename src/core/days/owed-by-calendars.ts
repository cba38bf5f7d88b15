import type { Calendars } from '../exclusions/calendar-history.ts';
import { exclusionOf } from '../exclusions/exclusion.ts';
import type { Instant, DayNumber } from '../instant.ts';
import type { Timing, Identity } from '../timing/timing.ts';
import { zoneOffsets } from '../zones/zone-offsets.ts';
import { dayTimes } from './day-times.ts';
import { firesOnce } from './decided-dates.ts';
import { instantsOf } from './kept-fires.ts';
import type { LateDay } from './late-days.ts';
import { dateAt } from './local-dates.ts';
import { MAX_MOVE_DAYS } from './moved-days.ts';

/** Whether an edit of a calendar may move a fire to a moment that has passed. */
export function mayOwe({ onExcluded, pick }: Pick<Timing, 'onExcluded' | 'pick'>): boolean {
  return onExcluded === 'previous' || pick !== null;
}

/**
 * Fires that edits of calendars since `editedAt` moved to moments that had passed by then, where no other fire was made.
 */
export function owedByCalendars(
  timing: Timing,
  { id, createdAt }: Identity,
  calendars: Calendars,
  { editedAt, now }: { editedAt: Instant; now: Instant },
): Instant[] {
  const { cron, timezone, kept } = timing;
  const exclusion = exclusionOf(timing, calendars);
  if (cron === null || exclusion === null || !mayOwe(timing)) return [];
  const { moved, late } = dayTimes(timing, { id, createdAt, cron, exclusion });
  const ofDay = ({ fires, owed }: LateDay) =>
    owed.flatMap(({ after, at }) =>
      at < editedAt ? [] : fires.flatMap(instantsOf).filter((one) => one > after && one <= at),
    );
  if (!moved) return owedOnce(late.map(ofDay), (at) => isInWindow(timing, at));
  const zone = zoneOffsets(timezone);
  /** Up to when the fires of a day had passed as an edit moved them; -Infinity: they had not, or no edit did. */
  const lateUntil = (day: DayNumber): Instant => {
    const { movedTo: to, version } = moved.decisionOf(day);
    const since = version > 0 ? exclusion.versions.endOf(version - 1) : -Infinity;
    return to !== day && since >= editedAt ? since : -Infinity;
  };
  const firesOn = firesOnce(timezone);
  const targets = new Set<DayNumber>();
  for (let day = dateAt(zone, editedAt); day <= dateAt(zone, now) + MAX_MOVE_DAYS + 2; day += 1)
    if (lateUntil(day) > -Infinity && moved.localTimesOn(day).length > 0)
      targets.add(moved.decisionOf(day).movedTo ?? day);
  // Days with the same times are made together: the earliest of the moments decides.
  const owed = [...targets].flatMap((to) => {
    const until = new Map<Instant[], Instant>();
    for (const day of moved.daysMovedTo(to)) {
      const fires = firesOn(moved.localTimesOn(day), to);
      until.set(fires, Math.min(until.get(fires) ?? Infinity, lateUntil(day)));
    }
    const isMade = (at: Instant, moment: Instant) => at > Math.max(moment, kept?.since ?? createdAt);
    const made = new Set([...until].flatMap(([fires, moment]) => fires.filter((at) => isMade(at, moment))));
    return [...until.keys()].map((fires) => fires.filter((at) => !made.has(at)));
  });
  return owedOnce(owed, (at) => isInWindow(timing, at));
}

/** In order, each once. No more of the oldest than any catch-up makes. */
export function owedOnce(lists: Iterable<readonly Instant[]>, isOwed: (at: Instant) => boolean): Instant[] {
  const all = [...new Set([...lists].flat())].sort((a, b) => a - b).filter(isOwed);
  return all.slice(-MAX_OWED);
}

const MAX_OWED = 10_001;

export function isInWindow({ startAt, endAt }: Timing, at: Instant): boolean {
  return at >= (startAt ?? -Infinity) && at < (endAt ?? Infinity);
}
