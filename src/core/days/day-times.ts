import { type CronTimes, readCron, timesOfLocals } from '../cron/cron.ts';
import { type DayRule, type LocalTimes, movedWallTimes, nextDay, wallOn } from '../cron/cron-wall.ts';
import { type Cron, mayHash } from '../cron/cron-fields.ts';
import { leastOf } from '../cron/remembering.ts';
import { dateOfDay } from '../exclusions/day-set.ts';
import type { CalendarVersions, Exclusion, ExclusionReason } from '../exclusions/exclusion.ts';
import { type DayNumber, type Instant, DAY_MS } from '../instant.ts';
import type { PickPeriod, Timing } from '../timing/timing.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';
import { type PickedDays, everyRule, pickRule } from './pick-days.ts';
import { type LateDay, closedDays, keptFires, lateDays } from './kept-fires.ts';
import { DAY_SECONDS, dateAt } from './local-dates.ts';
import { MAX_MOVE_DAYS, type MovedDays, firesWithin, movedDays, nextKeptDay } from './moved-days.ts';

/** Whether days decide more than by being selected and excluded. */
export function hasDayRule({ every, pick, onExcluded, kept }: Timing): boolean {
  return every !== null || pick !== null || onExcluded !== 'skip' || kept !== undefined;
}

/** How long before a fire calendars can have decided about it, in ms. */
export function calendarReachOf({ pick, onExcluded }: Pick<Timing, 'pick' | 'onExcluded'>): number {
  if (pick !== null) return LONGEST_DAYS[pick.of] * DAY_MS;
  return onExcluded === 'skip' ? 0 : (MAX_MOVE_DAYS + 3) * DAY_MS;
}

/** A period, and a day more on both sides: zones differ. */
const LONGEST_DAYS = { week: 9, month: 33, quarter: 94, year: 368 } as const satisfies Record<PickPeriod, number>;

/** The longest: versions of calendars are kept for so long. */
export const LONGEST_REACH_MS = LONGEST_DAYS.year * DAY_MS;

/** A fire that was moved to its day, or an excluded occurrence whose fires were moved away. */
export interface DayMove {
  /** The date that its fires were moved from; null: it is excluded itself. */
  from: string | null;
  /** The date that they were moved to; null: it is such a fire itself. */
  to: string | null;
  /** `calendar us-holidays` */
  because: string;
}

/** The fires of an expression under the rules of days, whatever `startAt` and `endAt` say. */
export interface DayTimes {
  fires: CronTimes;
  /** Also of days that are excluded: their fires at their own times. */
  onAnyDay: CronTimes;
  /** Null: these fires are yet to be judged by `exclude`, each at its moment. */
  days: { excludedBy(at: Instant): string | null; moveOf(at: Instant): DayMove | null } | null;
  /** Null: it moves none. */
  moved: MovedDays | null;
  /** The local times of each expression, on the days that are left before any are moved. */
  localTimes: readonly LocalTimes[];
  /** Null: it picks none. */
  picked: PickedDays | null;
  /** Days that edits of calendars picked once they had begun. */
  late: readonly LateDay[];
}

interface Ruled {
  id: string;
  /** Since when it has had these fire times, where no edit says that. */
  createdAt: Instant;
  cron: Cron;
  exclusion: Exclusion | null;
}

/**
 * In this order: selected → `every` → `exclude` → `pick` or `onExcluded`. Schedules of the same timing share one object, which decides
 * each day once: of a schedule's own, only the id counts, where a field is hashed from it, and what calendars said first. Throws CronError.
 */
export function dayTimes(timing: Timing, { id, createdAt, cron, exclusion }: Ruled): DayTimes {
  const known = compiled.get(timing);
  const hashedId = (known?.mayHash ?? mayHash(cron)) ? id : '';
  const versions = exclusion?.versions ?? NOTHING_EXCLUDED;
  const firstVersion = firstCalendarVersionOf(timing, createdAt, versions);
  const since = timing.kept?.since ?? createdAt;
  const isKnown = known?.id === hashedId && known.firstVersion === firstVersion && known.versions === versions;
  if (isKnown && (known.since === since || !known.times.picked?.renumbered().size)) return known.times;
  const times = compile(timing, { id: hashedId, cron, versions, firstVersion, since });
  compiled.set(timing, { ...{ mayHash: mayHash(cron), id: hashedId, firstVersion, versions, since }, times });
  return times;
}

/** What calendars said when the schedule got these fire times. */
export function firstCalendarVersionOf(
  { kept }: Pick<Timing, 'kept'>,
  createdAt: Instant,
  versions: CalendarVersions,
): number {
  return versions.indexAt((kept?.since ?? createdAt) + 1);
}

/** Planning repeatedly asks about objects that it keeps in memory anyway. */
const compiled = new WeakMap<Timing, Omit<Compiled, 'cron'> & { mayHash: boolean; times: DayTimes }>();

interface Compiled {
  id: string;
  cron: Cron;
  versions: CalendarVersions;
  firstVersion: number;
  since: Instant;
}

function compile(timing: Timing, { id, cron, versions, firstVersion, since }: Compiled): DayTimes {
  const { timezone, every, pick, onExcluded, kept } = timing;
  const zone = zoneOffsets(timezone);
  const ofEvery = every === null ? [] : [everyRule(every)];
  const closed = kept === undefined ? [] : [closedDays(kept)];
  const expressions = readCron(cron, id);
  const wallsBy = (rules: readonly DayRule[]) => expressions.localTimes(together(rules));
  if (pick !== null) {
    const candidates = wallsBy(ofEvery);
    const nextCandidate = (day: DayNumber) => nextKeptDay(candidates, day);
    const name = JSON.stringify([expressions.days(), timezone, every, pick, firstVersion]);
    const picked = pickRule({ pick, zone, versions, firstVersion, nextCandidate }, name);
    const localTimes = wallsBy([picked, ...closed]);
    const own = timesOfLocals(localTimes, timezone);
    const timesOn = (day: DayNumber) => timesOfLocals(localTimesOn(candidates, day), timezone);
    const late = lateDays({ timing, pick, zone, picked, timesOn, since });
    const fires = late.length === 0 ? own : earliestOf(own, keptFires({ dates: late }));
    return { fires, onAnyDay: fires, days: NOTHING_MOVED, moved: null, localTimes, picked, late };
  }
  const localTimes = wallsBy([...ofEvery, ...closed]);
  const own = timesOfLocals(localTimes, timezone);
  const none = { picked: null, late: [] };
  if (onExcluded === 'skip') return { fires: own, onAnyDay: own, days: null, moved: null, localTimes, ...none };
  const direction = onExcluded === 'next' ? 1 : -1;
  const moved = movedDays({ zone, versions, direction, localTimes, firstVersion });
  const fires = timesOfLocals([movedWallTimes(moved)], timezone);
  const days = judgeOf({ zone, versions, moved, fires });
  return { fires, onAnyDay: earliestOf(fires, own), days, moved, localTimes, ...none };
}

/** Those that keep a day, on this day alone. */
function localTimesOn(localTimes: readonly LocalTimes[], day: DayNumber): LocalTimes[] {
  return localTimes.flatMap((wall) => (nextDay(wall.days, day) === day ? [wallOn(wall, day)] : []));
}

const NOTHING_EXCLUDED: CalendarVersions = {
  indexAt: () => 0,
  endOf: () => Infinity,
  has: () => false,
  nearest: (_, day) => day,
  reasonOf: () => null,
};
const NOTHING_MOVED = { excludedBy: () => null, moveOf: () => null };

/** Its days, too, are searched for once. */
const EVERY_DAY: DayRule = { firstFrom: (day) => day };

/** The days that all rules keep. */
function together([first = EVERY_DAY, ...others]: readonly DayRule[]): DayRule {
  if (others.length === 0) return first;
  const rest = together(others);
  return {
    firstFrom: (asked) => {
      for (let day: DayNumber | null = asked; ;) {
        day = first.firstFrom(day);
        if (day === null) return day;
        const next: DayNumber | null = rest.firstFrom(day);
        if (next === null || next === day) return next;
        day = next;
      }
    },
  };
}

export function earliestOf(some: CronTimes, others: CronTimes): CronTimes {
  return {
    next: (after) => leastOf([some, others], (times) => times.next(after)),
    noteOf: (at) => some.noteOf(at),
  };
}

interface Judged {
  zone: ZoneOffsets;
  versions: CalendarVersions;
  moved: MovedDays;
  fires: CronTimes;
}

function judgeOf({ zone, versions, moved, fires }: Judged): NonNullable<DayTimes['days']> {
  // A herd asks about one moment.
  let asked: Instant | null = null;
  let wasFire = false;
  const isFire = (at: Instant) => {
    if (asked !== at) [wasFire, asked] = [fires.next(at - 1) === at, at];
    return wasFire;
  };
  const reasonOf = (day: DayNumber) => versions.reasonOf(moved.decisionOf(day).version, day);
  return {
    excludedBy: (at) => (isFire(at) ? null : (reasonOf(dateAt(zone, at))?.name ?? null)),
    moveOf: (at) => {
      if (!isFire(at)) {
        const day = dateAt(zone, at);
        const [{ movedTo: to }, reason] = [moved.decisionOf(day), reasonOf(day)];
        return to === null || reason === null ? null : { from: null, to: dateOfDay(to), because: inWords(reason) };
      }
      const sources = sourcesAt(zone, moved, at);
      const [from] = sources;
      if (from === undefined || sources.some((day) => moved.decisionOf(day).movedTo === day)) return null;
      const reason = reasonOf(from);
      return { from: dateOfDay(from), to: null, because: reason === null ? '' : inWords(reason) };
    },
  };
}

/** The days of which a fire is made at a moment, the earliest first. */
function sourcesAt(zone: ZoneOffsets, moved: MovedDays, at: Instant): DayNumber[] {
  const second = at / 1000;
  const { start, offset, gapFrom } = zone.at(second);
  // At the end of a gap, also the fires that it swallowed.
  const [first, last] = [second === start ? gapFrom : second + offset, second + offset];
  const found: DayNumber[] = [];
  for (let to = Math.floor(first / DAY_SECONDS); to <= Math.floor(last / DAY_SECONDS); to += 1) {
    const [from, until] = [first - to * DAY_SECONDS, last - to * DAY_SECONDS];
    for (const day of moved.daysMovedTo(to)) if (firesWithin(moved.localTimesOn(day), from, until)) found.push(day);
  }
  return found.sort((a, b) => a - b);
}

export function inWords({ by, name }: ExclusionReason): string {
  return by === 'date' && name.includes('/') ? `dates ${name}` : `${by} ${name}`;
}
