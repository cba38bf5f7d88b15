import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../instant.ts';
import type { Calendars } from '../exclusions/calendar-history.ts';
import { dateOfDay } from '../exclusions/date-entries.ts';
import { exclusionOf } from '../exclusions/exclusion.ts';
import type { Timing } from '../schedules/schedule.ts';
import type { KeptDate, KeptDates } from './day-rules.ts';
import { type Identity, fireTimes } from '../time/fire-times.ts';
import type { DayNumber } from '../utc-day.ts';
import type { WallTimes } from '../cron/cron-wall.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import { dayTimes, inWords } from './day-times.ts';
import { inSeries, instantsOf } from './kept-fires.ts';
import { dateBeginsAt, dateAt } from './local-dates.ts';
import { MAX_MOVE_DAYS, type MovedDays, firesMovedTo } from './moved-days.ts';

/** What an edit of the fire times has to respect of what was decided before it. */
interface DatesAtEdit {
  /** What the new definition keeps; absent: nothing. */
  kept: KeptDates | undefined;
  /** Fires that the edit moves to moments that have passed: they are to be made at once, or as `catchUp` says. */
  owed: Instant[];
}

interface Edit {
  before: Timing;
  after: Timing;
  identity: Identity;
  /** When the schedule was edited before; absent: never. */
  editedAt?: Instant;
  /** The moment of the edit. */
  now: Instant;
  calendars: Calendars;
}

/**
 * A date that has begun, or of which a fire was moved ahead and has come, keeps what the old definition decided: its moved fires stay
 * where they wait, and the new definition neither makes it again nor moves it. Fires that stay on their own date are not kept: their
 * times are those of the definition in force.
 */
export function datesAtEdit({ before, after, identity, editedAt, now, calendars }: Edit): DatesAtEdit {
  if (![before, after].some(decidesByDates)) return { kept: undefined, owed: [] };
  if (DECIDING.every((field) => isDeepStrictEqual(before[field], after[field])))
    return { kept: before.kept, owed: [] };
  const { kept: _, ...fresh } = after;
  const oldTimes = fireTimes(before, identity, calendars);
  const old = sideOf(before, identity, calendars);
  const young = sideOf(fresh, { ...identity, createdAt: now }, calendars);
  const dates: KeptDate[] = [];
  const late = new Set<Instant[]>();
  const leftOf = once((fires: Instant[]) => inSeries(fires.filter((at) => at > now)));
  const today = dateAt(young.zone, now);
  for (let day = today - REACH; day <= today + REACH; day += 1) {
    const moved = movedFires(old, day);
    const moves = movedFires(young, day);
    const isDecided =
      dateBeginsAt(old.zone, day) <= now ||
      (moved !== null && (moved.isKept === true || startsBy(moved, now)));
    const kept = isDecided ? keptOf({ day, today, now, moved, moves, young, old, leftOf }) : null;
    if (kept) dates.push(kept);
    if (!isDecided && moves !== null && startsBy(moves, now)) late.add(moves.fires);
  }
  const isKept = dates.length > 0 || decidesByDates(fresh);
  // What the old definition would have made before it was in force has no run.
  const since = before.kept?.since ?? editedAt ?? identity.createdAt;
  const isMade = (at: Instant) => at > since && oldTimes.next(at - 1) === at;
  return {
    kept: isKept ? { since: now, dates } : undefined,
    owed: owedOf(late, (at) => at <= now && isWithin(after, at) && !isMade(at)),
  };
}

/** Days that are moved to one often have the same list of fires. */
function once<Value>(work: (fires: Instant[]) => Value): (fires: Instant[]) => Value {
  const known = new Map<Instant[], Value>();
  return (fires) => {
    const value = known.get(fires) ?? work(fires);
    known.set(fires, value);
    return value;
  };
}

/** In order, each once. No more of the oldest than any catch-up makes. */
function owedOf(lists: Iterable<readonly Instant[]>, isOwed: (at: Instant) => boolean): Instant[] {
  const all = [...new Set([...lists].flat())].sort((a, b) => a - b).filter(isOwed);
  return all.slice(-MAX_OWED);
}

const MAX_OWED = 10_001;

const startsBy = ({ fires: [first = Infinity] }: MovedAway, now: Instant): boolean => first <= now;

/** Where these stay, so do all decisions. */
const DECIDING = ['cron', 'timezone', 'exclude', 'onExcluded', 'every', 'pick'] as const;

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
  /** Whether it has a fire of the day on the day, where it is not moved. */
  firesAtHome: (day: DayNumber) => boolean;
  firesOn: (walls: readonly WallTimes[], to: DayNumber) => Instant[];
}

function sideOf(timing: Timing, { id, createdAt }: Identity, calendars: Calendars): Side {
  const { cron, timezone, kept } = timing;
  const exclusion = exclusionOf(timing, calendars);
  const moved = cron === null ? null : dayTimes(timing, { id, createdAt, cron, exclusion }).moved;
  const zone = zoneOffsets(timezone);
  return {
    zone,
    moved,
    firesAtHome: (day) => {
      if (moved) return moved.wallsOn(day).length > 0;
      const own = kept && { ...kept, dates: kept.dates.map((one) => ({ ...one, fires: [] })) };
      const times = fireTimes(own ? { ...timing, kept: own } : timing, { id, createdAt }, calendars);
      const first = times.next(dateBeginsAt(zone, day) - 1);
      return first !== null && first < dateBeginsAt(zone, day + 1);
    },
    firesOn: firesOnce(zone),
    kept: new Map(kept?.dates.map((one) => [one.date, one])),
    reasonOf: (day) => {
      const reason = exclusion?.views.reasonOf(moved?.fateOf(day).view ?? 0, day) ?? null;
      return reason === null ? '' : inWords(reason);
    },
  };
}

/** Many days in a row are moved to one, which may have a fire each second: their fires are computed once. */
function firesOnce(zone: ZoneOffsets) {
  const ids = new Map<WallTimes, number>();
  const known = new Map<string, Instant[]>();
  return (walls: readonly WallTimes[], to: DayNumber): Instant[] => {
    for (const wall of walls) if (!ids.has(wall)) ids.set(wall, ids.size);
    const key = [to, ...walls.map((wall) => ids.get(wall))].join(' ');
    const fires = known.get(key) ?? firesMovedTo(zone, walls, to);
    known.set(key, fires);
    return fires;
  };
}

interface MovedAway {
  /** By an edit before. */
  isKept?: boolean;
  fires: Instant[];
  because: string;
}

/** The fires of a day that are not made on it; null: it is not moved. */
function movedFires({ moved, kept, reasonOf, firesOn }: Side, day: DayNumber): MovedAway | null {
  const known = kept.get(dateOfDay(day));
  if (known) return { fires: known.fires.flatMap(instantsOf), because: known.reason, isKept: true };
  const walls = moved?.wallsOn(day) ?? [];
  if (!moved || walls.length === 0) return null;
  const { to } = moved.fateOf(day);
  if (to === day) return null;
  return { fires: to === null ? [] : firesOn(walls, to), because: reasonOf(day) };
}

interface Decided {
  day: DayNumber;
  today: DayNumber;
  now: Instant;
  /** By the old definition, and by the new one. */
  moved: MovedAway | null;
  moves: MovedAway | null;
  young: Side;
  old: Side;
  leftOf: (fires: Instant[]) => KeptDate['fires'];
}

/** Null: the new definition makes of this date what was decided, without being told. */
function keptOf({ day, today, now, moved, moves, young, old, leftOf }: Decided): KeptDate | null {
  const date = dateOfDay(day);
  const isMoving = (moves?.fires.at(-1) ?? now) > now;
  if (moved !== null) {
    const isOver = (moved.fires.at(-1) ?? now) <= now;
    if (isOver && !isMoving && day < today) return null;
    return {
      date,
      reason: moved.because,
      fires: isOver ? [] : inSeries(moved.fires.filter((at) => at > now)),
    };
  }
  // The rest of a day stays on it also where all of it would be moved to moments that have passed.
  if (moves === null || (!isMoving && day < today)) return null;
  const stays = day === today && old.firesAtHome(day);
  const walls = stays ? (young.moved?.wallsOn(day) ?? []) : [];
  return { date, reason: moves.because, fires: leftOf(young.firesOn(walls, day)) };
}

function isWithin({ startAt, endAt }: Timing, at: Instant): boolean {
  return at >= (startAt ?? -Infinity) && at < (endAt ?? Infinity);
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
  if (cron === null || exclusion === null || timing.onExcluded !== 'previous') return [];
  const { moved } = dayTimes(timing, { id, createdAt, cron, exclusion });
  if (!moved) return [];
  const zone = zoneOffsets(timezone);
  /** Up to when the fires of a day had passed as an edit moved them; -Infinity: they had not, or no edit did. */
  const lateUntil = (day: DayNumber): Instant => {
    const { to, view } = moved.fateOf(day);
    const since = view > 0 ? exclusion.views.endOf(view - 1) : -Infinity;
    return to !== day && since >= editedAt ? since : -Infinity;
  };
  const firesOn = firesOnce(zone);
  const targets = new Set<DayNumber>();
  for (let day = dateAt(zone, editedAt); day <= dateAt(zone, now) + REACH; day += 1)
    if (lateUntil(day) > -Infinity && moved.wallsOn(day).length > 0) targets.add(moved.fateOf(day).to ?? day);
  // Days with the same times are made together: the earliest of the moments decides.
  const owed = [...targets].flatMap((to) => {
    const until = new Map<Instant[], Instant>();
    for (const day of moved.sourcesOf(to)) {
      const fires = firesOn(moved.wallsOn(day), to);
      until.set(fires, Math.min(until.get(fires) ?? Infinity, lateUntil(day)));
    }
    const isMade = (at: Instant, moment: Instant) => at > Math.max(moment, kept?.since ?? createdAt);
    const made = new Set([...until].flatMap(([fires, moment]) => fires.filter((at) => isMade(at, moment))));
    return [...until.keys()].map((fires) => fires.filter((at) => !made.has(at)));
  });
  return owedOf(owed, (at) => isWithin(timing, at));
}
