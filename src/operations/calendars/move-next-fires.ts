/**
 * Guarantees: after an edit of a calendar, the next fires of all schedules that name it follow its newest version: they leave days that
 *   are excluded now, and come back to days that are not excluded any more, but never to what was planned or lies before the edit.
 * Transaction: one for each page of schedules, which shares the calendars and compares their versions before it writes.
 * If the process dies here: `applied_version` says that there is more to do; the calendar watch of any instance does it anew.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { cursorByCalendars } from '../../core/exclusions/calendar-cursor.ts';
import { type Instant, LATEST } from '../../core/instant.ts';
import { calendarIdsOf } from '../../core/schedules/schedule.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import type { Database } from '../../postgres/database.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import {
  type CalendarMove,
  type CalendarUser,
  type UserPage,
  listCalendarUsers,
  moveCursorsUnderSharedCalendars,
} from '../../store/calendars/calendar-cursors.ts';
import {
  type KnownCalendars,
  readCalendars,
  unappliedSince,
} from '../../store/calendars/calendar-histories.ts';
import { shareFreeCalendars } from '../../store/calendars/share-calendars.ts';
import { recordApplied } from '../../store/calendars/write-calendars.ts';

export interface MoveNextFiresDeps {
  database: Database;
  events: EventBus;
}

const PAGE = 500;
/** The wait before it looks again at a page of which another transaction had rows locked. */
const AGAIN_MS = 50;

/**
 * Answers whether all is done. It ends early, and keeps what it did, if `mayGoOn` answers false before a page; called
 * again, it begins anew.
 */
export async function moveNextFires(
  { database, events }: MoveNextFiresDeps,
  calendarId: string,
  mayGoOn: () => boolean,
): Promise<boolean> {
  const known = await database.run((db) => readCalendars(db, [calendarId], LATEST));
  const version = known.versions.get(calendarId);
  const editedAt = known.unapplied.get(calendarId);
  if (version === undefined || editedAt === undefined) return true;
  const done = { schedules: 0, moved: 0 };
  for (let after: string | null = null; ;) {
    if (!mayGoOn()) return false;
    const from: string | null = after;
    const page: UserPage = await database.run((db) =>
      listCalendarUsers(db, calendarId, { after: from, limit: PAGE }),
    );
    const moved = await moveUsers(database, page.users, editedAt);
    done.moved += moved.count;
    if (moved.isComplete) {
      done.schedules += page.users.length;
      after = page.last;
      if (after === null) break;
    } else await delay(AGAIN_MS);
  }
  await database.run((db) => recordApplied(db, calendarId, version));
  events.emit({ type: 'nextFiresMoved', calendarId, version, ...done });
  return true;
}

/** Not complete: an edit or a fire was in the way of some schedules, which must be checked again. */
async function moveUsers(
  database: Database,
  users: readonly CalendarUser[],
  editedAt: Instant,
): Promise<{ count: number; isComplete: boolean }> {
  const naming = users.flatMap((user) => namingOf(user) ?? []);
  const ids = [...new Set(naming.flatMap((one) => one.ids))];
  const known = await database.run((db) => readCalendars(db, ids, editedAt));
  const moves: CalendarMove[] = [];
  const pace = createPace();
  for (const one of naming) {
    await pace();
    const move = moveOf(one, known);
    if (move) moves.push(move);
  }
  if (moves.length === 0) return { count: 0, isComplete: true };
  const count = await database.transaction(async (tx) => {
    const versions = await shareFreeCalendars(tx, ids);
    if (ids.some((id) => versions.get(id) !== known.versions.get(id))) return 0;
    return moveCursorsUnderSharedCalendars(tx, moves);
  });
  return { count, isComplete: count === moves.length };
}

interface Naming {
  user: CalendarUser;
  timing: ReturnType<typeof readTiming>;
  ids: readonly string[];
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

/** Null: its cursor is right. */
function moveOf({ user, timing, ids }: Naming, known: KnownCalendars): CalendarMove | null {
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
