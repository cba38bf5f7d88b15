/**
 * Guarantees: a calendar that is edited judges what occurs after the edit, and nothing before it; a calendar that schedules name is not
 *   deleted.
 * Transaction: one for the calendar, under its row lock, which waits for all that is being written by its version so far. Then the next
 *   fires of its users are moved, in transactions of their own (move-next-fires.ts).
 * If the process dies here: the edit is written or it is not; where it is, any instance moves the next fires that are left.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Scope } from '../../core/access/scope.ts';
import { daySetOfEntries } from '../../core/exclusions/calendar-history.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Auditor } from '../../store/audit/record-audit.ts';
import { type Calendar, findCalendar, lockCalendar } from '../../store/calendars/find-calendars.ts';
import {
  changeLockedCalendar,
  createCalendar,
  deleteLockedCalendar,
} from '../../store/calendars/write-calendars.ts';
import { usersOf } from '../../store/calendars/calendar-users.ts';
import { giveUpWalks } from '../../store/calendars/calendar-walks.ts';
import { byWhom } from '../named-things.ts';
import { type MoveNextFiresDeps, moveNextFires } from './move-next-fires.ts';
import { noProgress } from './walk-progress.ts';

/** Schedules name the calendar: it cannot be deleted. */
export class StillUsed extends Error {
  override readonly name = 'StillUsed';

  /** `others`: whether there are more, which the caller's scope does not have. */
  constructor(users: readonly string[], { andMore, others }: { andMore: boolean; others: boolean }) {
    super(`excluded ${byWhom(`${users.join(', ')}${andMore ? ' and more' : ''}`, others)}`);
  }
}

type CalendarChangeDeps = MoveNextFiresDeps & { auditor?: Auditor };

interface CalendarInput {
  id: string;
  description: string | null;
  dates: readonly string[];
}

/** How long a caller waits for the next fires of all users; the calendar watch does the rest. */
const MOVING_LIMIT_MS = 10_000;

/** Creates or replaces a calendar. `check` runs under its lock, and may throw to leave it as it is. */
export async function putCalendar(
  deps: CalendarChangeDeps,
  input: CalendarInput,
  check: (current: Calendar | null) => void,
): Promise<Put> {
  const { id } = input;
  const { calendar, change } = await deps.database.transaction(async (tx) => {
    const written = await putUnderLock(tx, input, check);
    const detail = { change: written.change, version: written.calendar.version, dates: input.dates.length };
    if (written.change !== 'unchanged')
      await deps.auditor?.note(tx, { action: 'calendar.put', subject: id, scheduleId: null, detail });
    return written;
  });
  const { version } = calendar;
  if (change !== 'unchanged') deps.events.emit({ type: 'calendarWritten', calendarId: id, change, version });
  return { calendar: await withNextFiresMoved(deps, calendar), change };
}

interface Put {
  calendar: Calendar;
  change: 'created' | 'updated' | 'unchanged';
}

async function putUnderLock(
  tx: Transaction,
  input: CalendarInput,
  check: (current: Calendar | null) => void,
): Promise<Put> {
  const current = await lockCalendar(tx, input.id);
  check(current);
  if (!current) return { calendar: await createCalendar(tx, input.id, input), change: 'created' };
  if (current.description === input.description && isDeepStrictEqual(current.dates, input.dates))
    return { calendar: current, change: 'unchanged' };
  const movesFires = !isDeepStrictEqual(daySetOfEntries(current.dates), daySetOfEntries(input.dates));
  return { calendar: await changeLockedCalendar(tx, current, input, { movesFires }), change: 'updated' };
}

/** Deletes a calendar. False: there is none. @throws StillUsed, and the errors of `check` */
export async function deleteCalendar(
  { database, events, auditor, scope }: CalendarChangeDeps & { scope: Scope },
  id: string,
  check: (current: Calendar) => void,
): Promise<boolean> {
  const version = await database.transaction(async (tx) => {
    const current = await lockCalendar(tx, id);
    if (!current) return null;
    check(current);
    // After the lock: a transaction that names the calendar in a schedule shares its row until it is committed.
    await refuseWhileUsed(tx, id, scope);
    const deleted = await deleteLockedCalendar(tx, id);
    await auditor?.note(tx, {
      ...{ action: 'calendar.delete', subject: id, scheduleId: null, detail: { version: deleted } },
    });
    return deleted;
  });
  if (version === null) return false;
  events.emit({ type: 'calendarWritten', calendarId: id, change: 'deleted', version });
  return true;
}

/** @throws StillUsed */
async function refuseWhileUsed(tx: Transaction, id: string, scope: Scope): Promise<void> {
  const limit = MAX_NAMED + 1;
  const users = await usersOf(tx, id, { scope: null, limit });
  if (users.length === 0) return;
  const seen = scope === null ? users : await usersOf(tx, id, { scope, limit });
  const others = seen.length < users.length;
  throw new StillUsed(seen.slice(0, MAX_NAMED), { andMore: seen.length > MAX_NAMED, others });
}

/** A reader does not need more; the answer says that there are more. */
const MAX_NAMED = 100;

/** The edit is committed. Whatever happens here, the caller learns of the edit, and the calendar watch goes on where this call ends. */
async function withNextFiresMoved(deps: MoveNextFiresDeps, calendar: Calendar): Promise<Calendar> {
  if (calendar.appliedVersion >= calendar.version) return calendar;
  const { id } = calendar;
  const { database } = deps;
  const until = systemClock.monotonic() + MOVING_LIMIT_MS;
  const progress = noProgress();
  const mayGoOn = () => systemClock.monotonic() < until;
  try {
    const isDone = await moveNextFires(deps, id, { mayGoOn, waits: true, progress });
    if (isDone) return { ...calendar, appliedVersion: calendar.version };
  } catch (error) {
    deps.events.emit({ type: 'nextFiresNotMoved', calendarId: id, scheduleId: null, error });
  }
  await database.run((db) => giveUpWalks(db, [progress.walker])).catch(() => undefined);
  return (await database.run((db) => findCalendar(db, id)).catch(() => null)) ?? calendar;
}
