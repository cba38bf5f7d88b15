import { calendarReachOf } from '../../core/days/day-times.ts';
import { cursorByCalendars } from '../../core/time/cursors.ts';
import type { Instant } from '../../core/instant.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import type { Database } from '../../postgres/database.ts';
import type { CalendarMove, CalendarUser } from '../../store/calendars/calendar-cursors.ts';
import {
  type KnownCalendars,
  readCalendars,
  unappliedSince,
} from '../../store/calendars/calendar-histories.ts';

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
