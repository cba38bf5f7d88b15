/**
 * Guarantees: a calendar that is edited judges what occurs after the edit, and nothing before it.
 * Transaction: that of named-changes.ts, under the calendar's row lock, which waits for all that is being written by its version so far.
 *   Then the next fires of its users are moved, in transactions of their own (move-next-fires.ts).
 * If the process dies here: the edit is written or it is not; where it is, any instance moves the next fires that are left.
 */
import { isDeepStrictEqual } from 'node:util';
import { daySetOfEntries } from '../../core/exclusions/exclusion.ts';
import { systemClock, type Clock } from '../../runtime/clock.ts';
import {
  type Calendar,
  CALENDAR_ROWS,
  changeLockedCalendar,
  createCalendar,
  deleteLockedCalendar,
  listUnapplied,
} from '../../store/calendars/calendar-rows.ts';
import { giveUpWalks } from '../../store/calendars/calendar-cursors.ts';
import { findNamed } from '../../store/names/named-rows.ts';
import type { NamedKind } from '../named-changes.ts';
import { type MoveNextFiresDeps, moveNextFires } from './move-next-fires.ts';
import { noProgress, type MoveProgress } from './walk-progress.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type Loop, createLoop } from '../../runtime/loop/loop.ts';

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

interface CalendarWatchDeps extends MoveNextFiresDeps {
  clock: Clock;
}

const INTERVAL_MS = 2_000;
/** The call that made the edit moves them itself, as far as it comes in its time. */
const LEFT_TO_CALLER_SECONDS = 5;
const BATCH = 100;
/** After this time a calendar gives way to the next one, which is long enough for a page. */
const TURN_MS = 2_000;
/** A pass comes back soon, so that the watchdog sees the loop turn; the next one goes on behind it. */
const PASS_MS = 10_000;

interface State extends CalendarWatchDeps {
  /** By calendar: where the next turn goes on. */
  progress: Map<string, MoveProgress>;
  /** The calendar that had the last turn. */
  last: string;
  stopping: boolean;
}

export function createCalendarWatch(deps: CalendarWatchDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, progress: new Map(), last: '', stopping: false };
  const loop = createLoop({ name: 'calendar-watch', clock, body: () => pass(state), events });
  return {
    ...loop,
    stop: async () => {
      state.stopping = true;
      await loop.stop();
      await deps.database.run((db) => giveUpWalks(db, walkersOf(state))).catch(() => undefined);
    },
  };
}

async function pass(state: State): Promise<number> {
  const { clock, database, events, progress } = state;
  const passEnd = clock.monotonic() + PASS_MS;
  const ids = await database.run((db) =>
    listUnapplied(db, {
      ...{ seconds: LEFT_TO_CALLER_SECONDS, after: state.last, limit: BATCH },
      walkers: walkersOf(state),
    }),
  );
  if (ids.length < BATCH) for (const id of progress.keys()) if (!ids.includes(id)) progress.delete(id);
  const failures: unknown[] = [];
  let isMore = false;
  for (const id of ids) {
    if (state.stopping || clock.monotonic() >= passEnd) {
      isMore = true;
      break;
    }
    state.last = id;
    // One calendar that fails does not stop the others.
    await turn(state, id).then(
      (hasMore) => (isMore ||= hasMore),
      (error: unknown) => {
        events.emit({ type: 'nextFiresNotMoved', calendarId: id, scheduleId: null, error: reasonOf(error) });
        failures.push(error);
      },
    );
  }
  if (failures.length > 0) throw failures[0];
  return isMore ? MORE_MS : INTERVAL_MS;
}

const MORE_MS = 50;

function walkersOf({ progress }: State): string[] {
  return [...progress.values()].map(({ walker }) => walker);
}

/** Answers whether there is more to do for this calendar now. */
async function turn(state: State, id: string): Promise<boolean> {
  const { clock } = state;
  const progress = state.progress.get(id) ?? noProgress();
  state.progress.set(id, progress);
  const until = clock.monotonic() + TURN_MS;
  const mayGoOn = () => !state.stopping && clock.monotonic() < until;
  const isDone = await moveNextFires(state, id, { mayGoOn, waits: false, progress });
  if (isDone) state.progress.delete(id);
  return !isDone && progress.isTaken && !progress.isAtEnd;
}
