/**
 * Guarantees: a calendar that is edited judges what occurs after the edit, and nothing before it.
 * Transaction: that of named-changes.ts, under the calendar's row lock, which waits for all that is being written by its version so far.
 *   Then the next fires of its users are moved, in transactions of their own (move-next-fires.ts).
 * If the process dies here: the edit is written or it is not; where it is, any instance moves the next fires that are left.
 */
import { isDeepStrictEqual } from 'node:util';
import { daySetOfEntries } from '../../core/exclusions/exclusion.ts';
import { systemClock } from '../../runtime/clock.ts';
import {
  type Calendar,
  CALENDAR_ROWS,
  changeLockedCalendar,
  createCalendar,
  deleteLockedCalendar,
} from '../../store/calendars/calendar-rows.ts';
import { giveUpWalks } from '../../store/calendars/calendar-cursors.ts';
import { findNamed } from '../../store/names/named-rows.ts';
import type { NamedKind } from '../named-changes.ts';
import { type MoveNextFiresDeps, moveNextFires } from './move-next-fires.ts';
import { noProgress } from './walk-progress.ts';

/** A put also moves the next fires of all users, where that is still to be done. */
export const CALENDAR_KIND: NamedKind<
  Calendar,
  Pick<Calendar, 'description' | 'dates' | 'validUntil'>,
  MoveNextFiresDeps
> = {
  noun: 'calendar',
  rows: CALENDAR_ROWS,
  detail: ({ dates }) => ({ dates: dates.length }),
  fieldsOf: ({ description, dates, validUntil }) => ({ description, dates, validUntil }),
  complete: ({ description, dates, validUntil }, { id, version, updatedAt }) => ({
    ...{ id, description, dates, validUntil, version, appliedVersion: 0, updatedAt },
  }),
  write: (tx, calendar, { before }) => {
    if (before === null) return createCalendar(tx, calendar.id, calendar);
    const movesFires = !isDeepStrictEqual(daySetOfEntries(before.dates), daySetOfEntries(calendar.dates));
    return changeLockedCalendar(tx, before, calendar, { movesFires });
  },
  afterPut: withNextFiresMoved,
  remove: async (tx, { id }) => ({ version: await deleteLockedCalendar(tx, id) }),
};

/** A caller has its answer within ten seconds, with the step that is under way then; the calendar watch does the rest. */
const MOVING_LIMIT_MS = 8_000;

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
  return (await database.run((db) => findNamed(db, CALENDAR_ROWS, { id })).catch(() => null)) ?? calendar;
}
