import type { CronTimes } from '../cron/cron.ts';
import type { DayRule } from '../cron/cron-wall.ts';
import { leastOf } from '../cron/remembering.ts';
import { dateOfDay, dayOfDate } from '../exclusions/day-set.ts';
import type { DayNumber, Instant } from '../instant.ts';
import type { DayPick, KeptDate, KeptDates, Timing } from '../timing/timing.ts';
import type { ZoneOffsets } from '../zones/zone-offsets.ts';
import { type PickedDays, PERIODS } from './pick-days.ts';
import { dateBeginsAt } from './local-dates.ts';

type Series = KeptDate['fires'][number];

/** Leaves out the dates that were decided before an edit: what they still fire is in `keptFires`. */
export function closedDays({ dates }: KeptDates): DayRule {
  const closed = new Set<DayNumber>(dates.flatMap(({ date }) => dayOfDate(date) ?? []));
  return {
    firstFrom: (day) => {
      let open = day;
      while (closed.has(open)) open += 1;
      return open;
    },
  };
}

/** The fires that are left of dates that were decided before an edit, or by one. */
export function keptFires({ dates }: { dates: readonly Pick<KeptDate, 'fires'>[] }): CronTimes {
  const all = dates.flatMap(({ fires }) => fires);
  return {
    next: (after) => leastOf(all, (one) => nextIn(one, after)),
    noteOf: () => null,
  };
}

/** The date of a fire that was kept; null: it is no such fire. */
export function keptDateOf({ dates }: KeptDates, at: Instant): KeptDate | null {
  return dates.find(({ fires }) => fires.some((one) => nextIn(one, at - 1) === at)) ?? null;
}

/** Instants in order, as few series of equal steps as one pass finds: a fire each minute of a day is one. */
export function inSeries(instants: Iterable<Instant>): Series[] {
  const series: [Instant, number, number][] = [];
  for (const at of instants) {
    const last = series.at(-1);
    // A step, once there is one, goes on.
    if (!last || (last[2] > 1 && at !== last[0] + last[1] * last[2])) series.push([at, 0, 1]);
    else if (last[2] === 1) [last[1], last[2]] = [at - last[0], 2];
    else last[2] += 1;
  }
  return series;
}

export function instantsOf([first, step, count]: Series): Instant[] {
  return Array.from({ length: count }, (_, index) => first + index * step);
}

function nextIn([first, step, count]: Series, after: Instant): Instant | null {
  if (after < first) return first;
  const index = step === 0 ? count : Math.floor((after - first) / step) + 1;
  return index < count ? first + index * step : null;
}

/** A day that is picked once it has begun, since its period would have no fire otherwise. */
export interface LateDay {
  day: DayNumber;
  fires: KeptDate['fires'];
  /** Which of them had passed as an edit picked it: those after a moment, up to that of the edit. */
  owed: { after: Instant; at: Instant }[];
}

interface Picking {
  timing: Pick<Timing, 'startAt' | 'endAt' | 'kept'>;
  pick: DayPick;
  zone: ZoneOffsets;
  picked: PickedDays;
  /** When a day fires that is picked. */
  timesOn: (day: DayNumber) => CronTimes;
  /** Since when the schedule has had its fire times. */
  since: Instant;
}

/**
 * No period is lost to an edit of a calendar: where one leaves it no day to come, and it has had no fire, the days up to today that are the
 * n-th ones now are made. What lies ahead today waits for its time, and an edit that comes before takes it back.
 */
export function lateDays({ timing, pick, zone, picked, timesOn, since }: Picking): LateDay[] {
  const { startAt, endAt, kept } = timing;
  const [first, end] = [(startAt ?? -Infinity) - 1, endAt ?? Infinity];
  const firesOn = (day: DayNumber, until: Instant): Instant[] => {
    const [found, times] = [[] as Instant[], timesOn(day)];
    for (let at = times.next(first); at !== null && at <= until && at < end; at = times.next(at)) found.push(at);
    return found;
  };
  const hasFire = (day: DayNumber): boolean => (timesOn(day).next(Math.max(since, first)) ?? Infinity) < end;
  const { indexOf } = PERIODS[pick.of];
  const closed = new Set(kept?.dates.map(({ date }) => date));
  // Of the edit of the definition, which is judged anew with the next one of a calendar.
  const own = kept?.dates.flatMap(({ date, isLate }) => (isLate ? (dayOfDate(date) ?? []) : [])) ?? [];
  const [ofDefinition] = own;
  const lateOf = (period: number): LateDay[] => {
    const edits = [...(picked.renumbered().get(period) ?? [])];
    const isOwn = ofDefinition !== undefined && indexOf(ofDefinition) === period;
    if (isOwn) edits.unshift({ at: since, until: picked.until, today: ofDefinition, days: [ofDefinition] });
    const isServed = hadFire(kept, zone, pick, period);
    const regular = picked.daysOf(period).filter((day) => !closed.has(dateOfDay(day)));
    const late = new Map<DayNumber, LateDay & { made: Instant }>();
    for (const { at, until, today, days } of edits) {
      if (regular.some((day) => day <= today && hasFire(day))) break;
      const hadNone = late.size === 0;
      for (const day of days) {
        const { owed = [], made = -Infinity } = late.get(day) ?? {};
        const mayBe = isServed ? isOwn && day === ofDefinition : hadNone || late.has(day);
        if (regular.includes(day) || !mayBe) continue;
        const fires = firesOn(day, day < today ? Infinity : until);
        const upTo = { made: fires.at(-1) ?? made, owed: [...owed, { after: made, at }] };
        if (fires.length > 0) late.set(day, { day, fires: inSeries(fires), ...upTo });
      }
    }
    return [...late.values()];
  };
  return [...new Set([...own.map(indexOf), ...picked.renumbered().keys()])].flatMap(lateOf);
}

/** Whether a period had a fire before an edit of the definition, or will have one that this kept. */
export function hadFire(
  kept: Omit<KeptDates, 'since'> | undefined,
  zone: ZoneOffsets,
  { of }: DayPick,
  period: number,
): boolean {
  const { dates = [], newest = -Infinity } = kept ?? {};
  const begin = dateBeginsAt(zone, PERIODS[of].startOf(period));
  const end = dateBeginsAt(zone, PERIODS[of].startOf(period + 1));
  const isIn = (at: Instant) => at >= begin && at < end;
  return isIn(newest) || dates.some(({ fires }) => fires.some(([at]) => isIn(at)));
}
