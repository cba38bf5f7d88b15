/**
 * Guarantees: after an edit of a calendar, the next fires of all schedules that name it follow its newest version: they leave days that
 *   are excluded now, and come back to days that are not excluded any more, but never to what was planned or lies before the edit.
 *   All next fires are moved before the first of what is owed to some (owed-fires.ts): else those that move ahead would be missed.
 * Transaction: one for each page of schedules, which shares the calendars and compares their editions before it writes.
 * If the process dies here: `applied_version` says that there is more to do, and calendar_walks how far it has come; the calendar watch of
 *   any instance goes on there.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { mayOwe } from '../../core/days/decided-dates.ts';
import { type Instant, LATEST } from '../../core/instant.ts';
import type { Database } from '../../postgres/database.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { systemClock } from '../../runtime/clock.ts';
import { inHalves } from '../../runtime/loop/batch.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { batchFaultOf } from '../../postgres/errors.ts';
import {
  type CalendarMove,
  type CalendarUser,
  type UserPage,
  findCalendarUsers,
  listCalendarUsers,
  moveCursorsUnderSharedCalendars,
  takeWalk,
} from '../../store/calendars/calendar-cursors.ts';
import { type KnownCalendars, readCalendars, shareFreeCalendars } from '../../store/calendars/calendar-histories.ts';
import { recordApplied } from '../../store/calendars/calendar-rows.ts';
import { type KnownUsers, knownUsers, moveOf } from './named-calendars.ts';
import { mayBeOwed, recordOwed } from './owed-fires.ts';
import { goOnAt, type MoveProgress, noProgress, PAGE, passPage, positionOf, walkAgain } from './walk-progress.ts';

export interface MoveNextFiresDeps {
  database: Database;
  events: EventBus;
  /** No older fire is recorded. */
  retentionDays: number;
}

interface MoveOptions {
  /** Asked before each step: a page of users, or a hundred to whom a fire may be owed. */
  mayGoOn: () => boolean;
  /** Whether it waits for users whose rows others have locked, and for another walker. */
  waits: boolean;
  /** Where the last call ended; this one changes it. */
  progress?: MoveProgress;
}

/** The wait before it looks again at a user of which another transaction had a row locked. */
const AGAIN_MS = 50;
/** The wait before it looks again whether another walker is done. */
const OTHER_MS = 200;
/** The wait for a user whose row cannot be written. */
const REST_MS = 60_000;

/**
 * Answers whether all is done. What it did stays done, and the next call with the same progress goes on behind it. Where somebody else
 * walks, it answers false; or waits until that one is done.
 */
export async function moveNextFires(
  deps: MoveNextFiresDeps,
  calendarId: string,
  { mayGoOn, waits, progress = noProgress() }: MoveOptions,
): Promise<boolean> {
  const { database, events } = deps;
  const edit = await unappliedEdit(deps, calendarId);
  if (!edit) return true;
  const { edition, version, editedAt } = edit;
  if (progress.edition !== edition) Object.assign(progress, noProgress(), { edition, version });
  const walk = { ...deps, calendarId, editedAt, progress };
  while (mayGoOn()) {
    if (!(await holdWalk(walk))) {
      if (!waits) return false;
      await delay(OTHER_MS);
      const present = await unappliedEdit(deps, calendarId);
      if (present?.edition !== edition) return !present;
    } else if (!progress.isAtEnd) await stepAlong(walk);
    else if (progress.left.size > 0) {
      if (await moveLeft(walk)) continue;
      if (!waits || Math.min(...progress.left.values()) > systemClock.monotonic() + AGAIN_MS) return false;
      await delay(AGAIN_MS);
    } else if (progress.walksAgain) walkAgain(progress);
    else {
      await database.run((db) => recordApplied(db, calendarId, version));
      const { schedules, moved } = progress;
      events.emit({ type: 'nextFiresMoved', calendarId, version, schedules, moved });
      return true;
    }
  }
  return false;
}

/** The newest version of a calendar, and when it was edited first that next fires may not follow yet; null: they follow all edits. */
async function unappliedEdit({ database }: MoveNextFiresDeps, calendarId: string) {
  const known = await database.run((db) => readCalendars(db, [calendarId], LATEST));
  const edition = known.editions.get(calendarId);
  const unapplied = known.unapplied.get(calendarId);
  return edition === undefined || unapplied === undefined ? null : { edition, ...unapplied };
}

interface MoveWalk extends MoveNextFiresDeps {
  calendarId: string;
  editedAt: Instant;
  progress: MoveProgress;
}

/** False: somebody else walks along the users of this calendar. */
async function holdWalk({ database, calendarId, progress }: MoveWalk): Promise<boolean> {
  const { version, walker, isTaken } = progress;
  const at = await database.run((db) =>
    takeWalk(db, { calendarId, version, walker }, isTaken ? positionOf(progress) : null),
  );
  if (at && !isTaken) goOnAt(progress, at);
  if (!at && isTaken) Object.assign(progress, noProgress(), { version });
  return at !== null;
}

function stepAlong(walk: MoveWalk): Promise<void> {
  return walk.progress.isOwing ? recordOwedOfPage(walk) : movePage(walk);
}

async function movePage(walk: MoveWalk): Promise<void> {
  const { database, calendarId, progress } = walk;
  const { after, limit } = progress;
  const asked = { after, limit, onlyOwing: false };
  const page: UserPage = await database.run((db) => listCalendarUsers(db, calendarId, asked));
  const [first, ...others] = page.users;
  try {
    await moveUsers(walk, await knownUsers(walk, page.users));
    progress.limit = Math.min(PAGE, limit * 2);
  } catch (error) {
    // It may have been too much at once. A user that is too much alone is passed over for now.
    progress.limit = Math.max(1, Math.floor(limit / 4));
    if (!first || others.length > 0) throw error;
    setAside(walk, first, error);
  }
  progress.schedules += page.users.length;
  passPage(progress, page.last);
}

async function recordOwedOfPage(walk: MoveWalk): Promise<void> {
  const { database, calendarId, progress } = walk;
  const asked = { after: progress.after, limit: PAGE, onlyOwing: true };
  const page = await database.run((db) => listCalendarUsers(db, calendarId, asked));
  const users = await knownUsers(walk, page.users);
  const looked = await recordOwedTo(walk, users);
  passPage(progress, users.naming.length > looked ? (users.naming[looked - 1]?.user.uid ?? null) : page.last);
}

/** Users that were passed over. False: none of them may be tried yet. */
async function moveLeft(walk: MoveWalk): Promise<boolean> {
  const { database, calendarId, progress } = walk;
  const now = systemClock.monotonic();
  const due = [...progress.left].flatMap(([uid, until]) => (until <= now ? [uid] : [])).slice(0, progress.limit);
  if (due.length === 0) return false;
  const found = await database.run((db) => findCalendarUsers(db, calendarId, due));
  for (const uid of due) progress.left.delete(uid);
  try {
    const users = await knownUsers(walk, found);
    await moveUsers(walk, users);
    const looked = await recordOwedTo(walk, users);
    for (const { user } of users.naming.slice(looked)) progress.left.set(user.uid, now);
  } catch (error) {
    for (const uid of due) progress.left.set(uid, now + REST_MS);
    throw error;
  }
  return true;
}

/** Where an edit or a fire is in the way of some of them, they are left for later. */
async function moveUsers(walk: MoveWalk, { naming, known }: KnownUsers): Promise<void> {
  const moves: CalendarMove[] = [];
  const pace = createPace();
  for (const one of naming) {
    await pace();
    const move = moveOf(one, known);
    if (move) moves.push(move);
    walk.progress.mayOwe ||= mayOwe(one.timing);
  }
  await inHalves(moves, {
    work: (part) => writeMoves(walk, part, known),
    faultOf: batchFaultOf,
    setAside: ({ user }, error) => setAside(walk, user, error),
  });
}

/** As many of the first of them as one transaction takes. Answers how many it has seen to, or left for later. */
async function recordOwedTo(walk: MoveWalk, { naming, known }: KnownUsers): Promise<number> {
  const { owing, looked } = await mayBeOwed(naming, known);
  await inHalves(owing, {
    work: async (part) => {
      const done = await recordOwed(walk, part, known);
      leave(
        walk,
        part.filter(({ user }) => !done.has(user.uid)),
      );
    },
    faultOf: batchFaultOf,
    setAside: ({ user }, error) => setAside(walk, user, error),
  });
  return looked;
}

function leave({ progress }: MoveWalk, some: readonly { user: CalendarUser }[]): void {
  const until = systemClock.monotonic() + AGAIN_MS;
  for (const { user } of some) progress.left.set(user.uid, until);
}

async function writeMoves(walk: MoveWalk, moves: readonly CalendarMove[], known: KnownCalendars): Promise<void> {
  const { database, progress } = walk;
  const ids = [...known.histories.keys()];
  const moved = await database.transaction(async (tx) => {
    const editions = await shareFreeCalendars(tx, ids);
    if (ids.some((id) => editions.get(id) !== known.editions.get(id))) return new Set<string>();
    return moveCursorsUnderSharedCalendars(tx, moves);
  });
  progress.moved += moved.size;
  leave(
    walk,
    moves.filter(({ user }) => !moved.has(user.uid)),
  );
}

function setAside({ events, calendarId, progress }: MoveWalk, { uid, id }: CalendarUser, error: unknown): void {
  progress.left.set(uid, systemClock.monotonic() + REST_MS);
  events.emit({ type: 'nextFiresNotMoved', calendarId, scheduleId: id, error: reasonOf(error) });
}
