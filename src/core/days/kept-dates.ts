import type { Instant } from '../instant.ts';
import type { Calendars } from '../exclusions/calendar-history.ts';
import { dateOfDay } from '../exclusions/date-entries.ts';
import { exclusionOf } from '../exclusions/exclusion.ts';
import type { Timing } from '../schedules/schedule.ts';
import type { KeptDate, KeptDates } from './day-rules.ts';
import { type FireTimes, type Identity, fireTimes } from '../time/fire-times.ts';
import type { DayNumber } from '../utc-day.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import { dayTimes, inWords } from './day-times.ts';
import { inSeries, instantsOf } from './kept-fires.ts';
import { beginningOf, dateAt } from './local-dates.ts';
import { MAX_MOVE_DAYS, type MovedDays, firesMovedTo } from './moved-days.ts';

/** What an edit of the fire times has to respect of what was decided before it. */
export interface DatesAtEdit {
  /** What the new definition keeps; absent: nothing. */
  kept: KeptDates | undefined;
  /** Fires that the edit moves to moments that have passed: they are to be made at once, or as `catchUp` says. */
  owed: Instant[];
}

interface Edit {
  before: Timing;
  after: Timing;
  identity: Identity;
  /** The moment of the edit. */
  now: Instant;
  calendars: Calendars;
}

/**
 * A date that has begun, or of which a fire was moved ahead and has come, keeps what the old definition decided: its moved fires stay
 * where they wait, and the new definition neither makes it again nor moves it. Fires that stay on their own date are not kept: their
 * times are those of the definition in force.
 */
export function datesAtEdit({ before, after, identity, now, calendars }: Edit): DatesAtEdit {
  const nothing = { kept: undefined, owed: [] };
  if (![before, after].some(decidesByDates)) return nothing;
  const { kept: _, ...fresh } = after;
  const oldTimes = fireTimes(before, identity, calendars);
  const old = sideOf(before, identity, calendars);
  const young = sideOf(fresh, { ...identity, createdAt: now }, calendars);
  const dates: KeptDate[] = [];
  const owed = new Set<Instant>();
  const today = dateAt(young.zone, now);
  for (let day = today - REACH; day <= today + REACH; day += 1) {
    const moved = movedFires(old, day);
    const begun = beginningOf(old.zone, day) <= now;
    const moves = movedFires(young, day);
    if (begun || moved?.isKept || moved?.fires.some((at) => at <= now)) {
      const kept = keptOf({ day, today, now, moved, moves, young, oldTimes, oldZone: old.zone });
      if (kept) dates.push(kept);
      continue;
    }
    const late = (moves?.fires ?? []).filter((at) => at <= now && oldTimes.next(at - 1) !== at);
    for (const at of late) owed.add(at);
  }
  const isKept = dates.length > 0 || decidesByDates(fresh);
  return {
    kept: isKept ? { since: now, dates } : undefined,
    owed: [...owed].filter(within(after)).sort((a, b) => a - b),
  };
}

/** A day more than fires are moved, since zones can differ. */
const REACH = MAX_MOVE_DAYS + 2;

/** Others judge each fire at its own moment. */
function decidesByDates({ onExcluded, pick, kept }: Timing): boolean {
  return onExcluded !== 'skip' || pick !== null || kept !== undefined;
}

interface Side {
  zone: ZoneOffsets;
  moved: MovedDays | null;
  kept: ReadonlyMap<string, KeptDate>;
  reasonOf: (day: DayNumber) => string;
}

function sideOf(timing: Timing, { id, createdAt }: Identity, calendars: Calendars): Side {
  const { cron, timezone, kept } = timing;
  const exclusion = exclusionOf(timing, calendars);
  const moved = cron === null ? null : dayTimes(timing, { id, createdAt, cron, exclusion }).moved;
  return {
    zone: zoneOffsets(timezone),
    moved,
    kept: new Map(kept?.dates.map((one) => [one.date, one])),
    reasonOf: (day) => {
      const reason = exclusion?.views.reasonOf(moved?.fateOf(day).view ?? 0, day) ?? null;
      return reason === null ? '' : inWords(reason);
    },
  };
}

interface MovedAway {
  /** By an edit before. */
  isKept?: boolean;
  fires: Instant[];
  because: string;
}

/** The fires of a day that are not made on it; null: it is not moved. */
function movedFires({ zone, moved, kept, reasonOf }: Side, day: DayNumber): MovedAway | null {
  const known = kept.get(dateOfDay(day));
  if (known) return { fires: known.fires.flatMap(instantsOf), because: known.reason, isKept: true };
  const walls = moved?.wallsOn(day) ?? [];
  if (!moved || walls.length === 0) return null;
  const { to } = moved.fateOf(day);
  if (to === day) return null;
  return { fires: to === null ? [] : [...firesMovedTo(zone, walls, to)], because: reasonOf(day) };
}

interface Decided {
  day: DayNumber;
  today: DayNumber;
  now: Instant;
  /** By the old definition, and by the new one. */
  moved: MovedAway | null;
  moves: MovedAway | null;
  young: Side;
  oldTimes: FireTimes;
  oldZone: ZoneOffsets;
}

/** Null: the new definition makes of this date what was decided, without being told. */
function keptOf({ day, today, now, moved, moves, young, oldTimes, oldZone }: Decided): KeptDate | null {
  const date = dateOfDay(day);
  const isMoving = moves?.fires.some((at) => at > now) ?? false;
  if (moved !== null) {
    const left = moved.fires.filter((at) => at > now);
    if (left.length === 0 && !isMoving && day < today) return null;
    return { date, reason: moved.because, fires: inSeries(left) };
  }
  if (moves === null || !isMoving) return null;
  const begins = beginningOf(oldZone, day);
  const first = oldTimes.next(begins - 1);
  const stayed = day === today && first !== null && first < beginningOf(oldZone, day + 1);
  const walls = stayed ? (young.moved?.wallsOn(day) ?? []) : [];
  const own = [...firesMovedTo(young.zone, walls, day)].filter((at) => at > now);
  return { date, reason: moves.because, fires: inSeries(own) };
}

function within({ startAt, endAt }: Timing): (at: Instant) => boolean {
  return (at) => at >= (startAt ?? -Infinity) && at < (endAt ?? Infinity);
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
  const { cron, timezone } = timing;
  const exclusion = exclusionOf(timing, calendars);
  if (cron === null || exclusion === null || timing.onExcluded !== 'previous') return [];
  const { moved } = dayTimes(timing, { id, createdAt, cron, exclusion });
  if (!moved) return [];
  const zone = zoneOffsets(timezone);
  const cameTooLate = (day: DayNumber, at: Instant): boolean => {
    const since = exclusion.views.endOf(moved.fateOf(day).view - 1);
    return moved.fateOf(day).view > 0 && since >= editedAt && at <= since;
  };
  const owed = new Set<Instant>();
  for (let day = dateAt(zone, editedAt); day <= dateAt(zone, now) + REACH; day += 1) {
    const { to } = moved.fateOf(day);
    if (to === null || to === day) continue;
    for (const at of firesMovedTo(zone, moved.wallsOn(day), to)) {
      if (!cameTooLate(day, at)) break;
      const others = moved.sourcesOf(to).filter((one) => firesAt(zone, moved, one, to, at));
      if (others.every((one) => cameTooLate(one, at))) owed.add(at);
    }
  }
  return [...owed].filter(within(timing)).sort((a, b) => a - b);
}

function firesAt(zone: ZoneOffsets, moved: MovedDays, day: DayNumber, to: DayNumber, at: Instant): boolean {
  for (const one of firesMovedTo(zone, moved.wallsOn(day), to)) if (one >= at) return one === at;
  return false;
}
