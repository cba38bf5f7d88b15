import { LRUCache } from 'lru-cache';
import type { Calendars } from '../core/exclusions/exclusion.ts';
import { cursorByCalendars } from '../core/time/cursors.ts';
import { calendarReachOf } from '../core/days/day-times.ts';
import type { Instant } from '../core/instant.ts';
import { type Timing, calendarIdsOf, isHeartbeat } from '../core/timing/timing.ts';
import { readTiming } from '../core/schedules/stored-definition.ts';
import type { FireTimes } from '../core/time/fire-times.ts';
import type { Database } from '../postgres/database.ts';
import { readUpdatedAt } from '../store/calendars/calendar-cursors.ts';
import { type KnownCalendars, readCalendars, unappliedSince } from '../store/calendars/calendar-histories.ts';
import type { LockedSchedule } from '../store/schedules/locked-schedule.ts';

/** Many schedules share few timings. One with 2,000 dates has 50,000 characters. */
const timings = new LRUCache<string, Timing>({
  max: 10_000,
  maxSize: 20_000_000,
  sizeCalculation: (_timing, text) => text.length,
});

/** @throws Error where it cannot be planned by */
export function timingOf(text: string): Timing {
  const known = timings.get(text);
  if (known) return known;
  const timing = readTiming(text);
  // One that is due has fire times.
  if (isHeartbeat(timing)) throw new Error('its timing is of no kind that can be planned');
  timings.set(text, timing);
  return timing;
}

/** What planning a schedule needs of the calendars that it names. */
export interface ScheduleCalendars {
  histories: Calendars;
  /** null: there is no such calendar. */
  editions: ReadonlyMap<string, string | null>;
  /** An edit that its cursor may not follow yet, and when the schedule itself was last written. */
  unapplied: { editedAt: Instant; updatedAt: Instant } | null;
}

/** By uid; without those that name no calendar, which cost nothing. */
export type CalendarReader = (schedules: readonly LockedSchedule[]) => Promise<ReadonlyMap<string, ScheduleCalendars>>;

/** One or two statements for all schedules that name calendars, and none where no schedule does. */
export function createCalendarReader(database: Database): CalendarReader {
  return async (schedules) => {
    const naming = schedules.flatMap((schedule) => namingOf(schedule) ?? []);
    if (naming.length === 0) return NO_CALENDARS;
    const ids = [...new Set(naming.flatMap((one) => one.ids))];
    const since = Math.min(...naming.map(({ schedule, reach }) => schedule.nextOccurrenceAt - reach));
    return database.run(async (db) => {
      const known = await readCalendars(db, ids, since);
      const behind = naming.filter((one) => unappliedSince(known, one.ids) !== null);
      const updatedAt = await readUpdatedAt(
        db,
        behind.map(({ schedule }) => schedule.uid),
      );
      return new Map(naming.map((one) => [one.schedule.uid, calendarsOf(one, known, updatedAt.get(one.schedule.uid))]));
    });
  };
}

/** Where a plan begins: a cursor may not follow the last edits of its calendars yet. */
export function beginningOf(
  times: FireTimes,
  { nextOccurrenceAt, plannedThrough }: LockedSchedule,
  calendars: ScheduleCalendars | undefined,
): Instant | null {
  if (!calendars?.unapplied) return nextOccurrenceAt;
  const { editedAt, updatedAt } = calendars.unapplied;
  return cursorByCalendars(times, { nextOccurrenceAt, plannedThrough, updatedAt }, editedAt);
}

const NO_CALENDARS: ReadonlyMap<string, ScheduleCalendars> = new Map();

interface Naming {
  schedule: LockedSchedule;
  ids: readonly string[];
  /** How long before its next occurrence calendars decide about it. */
  reach: number;
}

/** Null also where it cannot be planned: that is told when it is planned. */
function namingOf(schedule: LockedSchedule): Naming | null {
  try {
    const timing = timingOf(schedule.timing);
    const ids = calendarIdsOf(timing);
    if (ids.length === 0 || !Number.isFinite(schedule.nextOccurrenceAt)) return null;
    return { schedule, ids, reach: calendarReachOf(timing) };
  } catch {
    return null;
  }
}

function calendarsOf({ ids }: Naming, known: KnownCalendars, updatedAt: Instant | undefined): ScheduleCalendars {
  const editedAt = unappliedSince(known, ids);
  return {
    histories: known.histories,
    editions: new Map(ids.map((id) => [id, known.editions.get(id) ?? null])),
    unapplied: editedAt === null || updatedAt === undefined ? null : { editedAt, updatedAt },
  };
}
