import { readCron, timesOfLocals } from '../cron/cron.ts';
import { type LocalTimes, isPeriodic, nextDay, wallOn } from '../cron/cron-wall.ts';
import { type Calendars, exclusionOf } from '../exclusions/exclusion.ts';
import { dateOfDay } from '../exclusions/day-set.ts';
import type { DayNumber, Instant } from '../instant.ts';
import type { Identity, KeptDate, Timing } from '../timing/timing.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import { type DayTimes, dayTimes, inWords } from './day-times.ts';
import { type LateDay, instantsOf } from './kept-fires.ts';
import { dateAt } from './local-dates.ts';
import { MAX_MOVE_DAYS } from './moved-days.ts';

/** What a definition decides for a date that has fires by it. */
export interface DecidedDate {
  /** Where they are made; null: nowhere. */
  to: DayNumber | null;
  /** In order; the same list for days with the same times that go to one day. */
  fires: () => readonly Instant[];
  /** What excludes it. */
  because: string | null;
  /** By an edit before it. */
  isKept: boolean;
  /** Picked by an edit once it had begun. */
  isLate: boolean;
}

/** A definition, as it decides about one date after the other. */
export interface Decider {
  zone: ZoneOffsets;
  picked: DayTimes['picked'];
  /** Null: it has no fires. */
  decide: (day: DayNumber) => DecidedDate | null;
  /** The fires of a date at the times of day of this definition, on a day; null: it has none that could be made there. */
  firesOn: (day: DayNumber, to: DayNumber) => readonly Instant[] | null;
}

export function deciderOf(timing: Timing, { id, createdAt }: Identity, calendars: Calendars): Decider {
  const { cron, timezone, kept } = timing;
  const exclusion = exclusionOf(timing, calendars);
  const times = cron === null ? null : dayTimes(timing, { id, createdAt, cron, exclusion });
  const selecting = cron === null ? [] : readCron(cron, id).localTimes(null);
  const known = new Map(kept?.dates.flatMap((one) => (one.isLate ? [] : [[one.date, one]])));
  const late = new Map(times?.late.map((one) => [one.day, one]));
  const zone = zoneOffsets(timezone);
  const made = firesOnce(timezone);
  const byMoment = times?.days === null ? exclusion : null;
  const isFree = (at: Instant) => (byMoment?.reasonAt(at) ?? null) === null;
  const keptOn = ({ fires, reason }: KeptDate): DecidedDate => {
    const all = fires.flatMap(instantsOf);
    const to = all[0] === undefined ? null : dateAt(zone, all[0]);
    return { to, fires: () => all, because: reason === '' ? null : reason, isKept: true, isLate: false };
  };
  const decide = (day: DayNumber): DecidedDate | null => {
    const [before, picked] = [known.get(dateOfDay(day)), late.get(day)];
    const own = { because: null, isKept: false, isLate: picked !== undefined };
    if (picked) return { ...own, to: day, fires: () => picked.fires.flatMap(instantsOf) };
    if (before) return keptOn(before);
    const localTimes = localTimesOn(times?.localTimes ?? [], day);
    if (localTimes.length === 0) return null;
    const { movedTo: to, version } = times?.moved?.decisionOf(day) ?? { movedTo: day, version: 0 };
    if (to === day) return { ...own, to, fires: () => made(localTimes, day).filter(isFree) };
    const reason = exclusion?.versions.reasonOf(version, day) ?? null;
    const because = reason && inWords(reason);
    return { ...own, to, because, fires: () => (to === null ? [] : made(localTimes, to)) };
  };
  const firesOn = (day: DayNumber, to: DayNumber) => {
    const selected = localTimesOn(selecting, day);
    const localTimes = selected.length > 0 ? selected : selecting;
    return localTimes.length === 0 || (day !== to && localTimes.some(isPeriodic)) ? null : made(localTimes, to);
  };
  return { zone, picked: times?.picked ?? null, decide, firesOn };
}

const localTimesOn = (localTimes: readonly LocalTimes[], day: DayNumber) =>
  localTimes.filter(({ days }) => nextDay(days, day) === day);

/** Many days in a row are moved to one, which may have a fire each second: their fires are computed once. */
function firesOnce(timezone: string | null) {
  const ids = new Map<LocalTimes, number>();
  const known = new Map<string, Instant[]>();
  return (localTimes: readonly LocalTimes[], to: DayNumber): Instant[] => {
    for (const wall of localTimes) if (!ids.has(wall)) ids.set(wall, ids.size);
    const key = [to, ...localTimes.map((wall) => ids.get(wall))].join(' ');
    const fires = known.get(key) ?? firesOf(localTimes, to, timezone);
    known.set(key, fires);
    return fires;
  };
}

function firesOf(localTimes: readonly LocalTimes[], to: DayNumber, timezone: string | null): Instant[] {
  const times = timesOfLocals(
    localTimes.map((wall) => wallOn(wall, to)),
    timezone,
  );
  const found: Instant[] = [];
  for (let at = times.next(-Infinity); at !== null; at = times.next(at)) found.push(at);
  return found;
}

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
