import { readCron, timesOfWalls } from '../cron/cron.ts';
import { type WallTimes, isPeriodic, nextDay, wallOn } from '../cron/cron-wall.ts';
import type { Calendars } from '../exclusions/calendar-history.ts';
import { dateOfDay } from '../exclusions/date-entries.ts';
import { exclusionOf } from '../exclusions/exclusion.ts';
import type { Instant } from '../instant.ts';
import type { Timing, Identity } from '../timing/timing.ts';
import type { DayNumber } from '../utc-day.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import type { KeptDate } from '../timing/day-rules.ts';
import { type DayTimes, dayTimes, inWords } from './day-times.ts';
import { instantsOf } from './kept-fires.ts';
import { dateAt } from './local-dates.ts';

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
  const selecting = cron === null ? [] : readCron(cron, id).walls(null);
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
    const walls = wallsOn(times?.walls ?? [], day);
    if (walls.length === 0) return null;
    const { to, view } = times?.moved?.fateOf(day) ?? { to: day, view: 0 };
    if (to === day) return { ...own, to, fires: () => made(walls, day).filter(isFree) };
    const reason = exclusion?.views.reasonOf(view, day) ?? null;
    const because = reason && inWords(reason);
    return { ...own, to, because, fires: () => (to === null ? [] : made(walls, to)) };
  };
  const firesOn = (day: DayNumber, to: DayNumber) => {
    const selected = wallsOn(selecting, day);
    const walls = selected.length > 0 ? selected : selecting;
    return walls.length === 0 || (day !== to && walls.some(isPeriodic)) ? null : made(walls, to);
  };
  return { zone, picked: times?.picked ?? null, decide, firesOn };
}

const wallsOn = (walls: readonly WallTimes[], day: DayNumber) =>
  walls.filter(({ days }) => nextDay(days, day) === day);

/** Many days in a row are moved to one, which may have a fire each second: their fires are computed once. */
export function firesOnce(timezone: string | null) {
  const ids = new Map<WallTimes, number>();
  const known = new Map<string, Instant[]>();
  return (walls: readonly WallTimes[], to: DayNumber): Instant[] => {
    for (const wall of walls) if (!ids.has(wall)) ids.set(wall, ids.size);
    const key = [to, ...walls.map((wall) => ids.get(wall))].join(' ');
    const fires = known.get(key) ?? firesOf(walls, to, timezone);
    known.set(key, fires);
    return fires;
  };
}

function firesOf(walls: readonly WallTimes[], to: DayNumber, timezone: string | null): Instant[] {
  const times = timesOfWalls(
    walls.map((wall) => wallOn(wall, to)),
    timezone,
  );
  const found: Instant[] = [];
  for (let at = times.next(-Infinity); at !== null; at = times.next(at)) found.push(at);
  return found;
}
