/**
 * Guarantees: what an edit decides by calendars still holds when it is written; a schedule whose cursor does not follow the last edits of
 *   its calendars yet is edited, or backfilled, as if it did.
 * Transaction: that of the caller, who has locked the rows of the schedules; the calendars are shared until it ends.
 * If the process dies here: nothing is written.
 */
import { cursorByCalendars } from '../../core/time/cursors.ts';
import { LONGEST_REACH_MS, calendarReachOf } from '../../core/days/day-times.ts';
import type { Instant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { type FireTimes, fireTimes } from '../../core/time/fire-times.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import {
  type KnownCalendars,
  readCalendars,
  shareCalendars,
  unappliedSince,
} from '../../store/calendars/calendar-histories.ts';
import type { NamedCalendars, CalendarMove, CalendarUser } from '../../store/calendars/calendar-cursors.ts';
import type { Edited } from '../schedules/plan-before-update.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import type { Database } from '../../postgres/database.ts';

/**
 * Keeps calendars as they are until the transaction ends, and reads them: those that schedules name, and the `further` ones. The caller
 * has locked the rows of the schedules, whose cursors are corrected here where they do not follow the last edits of their calendars yet.
 */
export async function shareCalendarsOf(
  tx: Transaction,
  schedules: Iterable<Schedule>,
  further: readonly string[] = [],
): Promise<KnownCalendars> {
  const naming = [...schedules].filter(({ definition }) => calendarIdsOf(definition).length > 0);
  const named = naming.flatMap(({ definition }) => calendarIdsOf(definition));
  const ids = [...new Set([...further, ...named])];
  await shareCalendars(tx, ids);
  const cursors = naming.flatMap(({ nextOccurrenceAt }) => nextOccurrenceAt ?? []);
  // The definition that is being written may pick or move days, whatever the schedule does now.
  const since = Math.min(...cursors, (await sinceOf(tx, ids)) ?? Infinity) - LONGEST_REACH_MS;
  const known = await readCalendars(tx, ids, since);
  for (const schedule of naming) correctCursor(schedule, known);
  return known;
}

/** More than the grace of an `at` that fires late, or a jitter, can reach back. */
const REACH_MS = 32 * 86_400_000;

async function sinceOf(tx: Transaction, ids: readonly string[]): Promise<Instant | null> {
  return ids.length === 0 ? null : (await databaseNow(tx)) - REACH_MS;
}

function correctCursor(schedule: Schedule, known: KnownCalendars): void {
  const editedAt = unappliedSince(known, calendarIdsOf(schedule.definition));
  if (editedAt === null || !schedule.definition.enabled) return;
  const times = timesOrNull(schedule, known);
  if (times) schedule.nextOccurrenceAt = cursorByCalendars(times, schedule, editedAt);
}

/** Null if it cannot be planned: the edit may mend that. */
export function timesOrNull(schedule: Schedule, { histories }: KnownCalendars): FireTimes | null {
  try {
    return fireTimes(schedule.definition, schedule, histories);
  } catch {
    return null;
  }
}

/**
 * The new links; none if it names no calendar, before and after.
 * @throws Error if a newly named calendar is not shared
 */
export function namedBy({ schedule, write }: Edited, { editions }: KnownCalendars): NamedCalendars[] {
  if (!write) return [];
  const before = schedule ? calendarIdsOf(schedule.definition) : [];
  const after = calendarIdsOf(write.definition);
  const unknown = after.find((id) => !before.includes(id) && !editions.has(id));
  if (unknown !== undefined) throw new Error(`there is no calendar ${unknown}, or it is not shared`);
  return before.length + after.length === 0 ? [] : [{ uid: write.uid, before, after }];
}

interface Naming {
  user: CalendarUser;
  timing: ReturnType<typeof readTiming>;
  ids: readonly string[];
}

/** Users that can be planned, and what their calendars say. */
export interface KnownUsers {
  naming: readonly Naming[];
  known: KnownCalendars;
}

/** What the calendars of these users say, as far as it matters since that edit. */
export async function knownUsers(
  { database, editedAt }: { database: Database; editedAt: Instant },
  users: readonly CalendarUser[],
): Promise<KnownUsers> {
  const naming = users.flatMap((user) => namingOf(user) ?? []);
  const ids = [...new Set(naming.flatMap((one) => one.ids))];
  const reach = Math.max(0, ...naming.map(({ timing }) => calendarReachOf(timing)));
  return { naming, known: await database.run((db) => readCalendars(db, ids, editedAt - reach)) };
}

/** Null: its cursor is right. */
export function moveOf({ user, timing, ids }: Naming, known: KnownCalendars): CalendarMove | null {
  const editedAt = unappliedSince(known, ids);
  if (editedAt === null) return null;
  try {
    const times = fireTimes(timing, user, known.histories);
    const nextOccurrenceAt = cursorByCalendars(times, user, editedAt);
    if (nextOccurrenceAt === user.nextOccurrenceAt) return null;
    const nextFireAt = nextOccurrenceAt === null ? null : times.dueAt(nextOccurrenceAt);
    return { user, nextOccurrenceAt, nextFireAt };
  } catch {
    return null;
  }
}

/** Null if its row cannot be planned: the tick reports that. */
function namingOf(user: CalendarUser): Naming | null {
  const moments = [user.nextOccurrenceAt ?? 0, user.plannedThrough ?? 0, user.updatedAt, user.createdAt];
  if (!moments.every(Number.isFinite)) return null;
  try {
    const timing = readTiming(user.timing);
    return { user, timing, ids: calendarIdsOf(timing) };
  } catch {
    return null;
  }
}
