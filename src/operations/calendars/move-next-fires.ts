/**
 * Guarantees: after an edit of a calendar, the next fires of all schedules that name it follow its newest version: they leave days that
 *   are excluded now, and come back to days that are not excluded any more, but never to what was planned or lies before the edit.
 * Transaction: one for each page of schedules, which shares the calendars and compares their editions before it writes.
 * If the process dies here: `applied_version` says that there is more to do; the calendar watch of any instance begins anew, and finds
 *   what was moved done.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { cursorByCalendars } from '../../core/exclusions/calendar-cursor.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { type Instant, LATEST } from '../../core/instant.ts';
import { calendarIdsOf } from '../../core/schedules/schedule.ts';
import { readTiming } from '../../core/schedules/stored-definition.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
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
} from '../../store/calendars/calendar-cursors.ts';
import {
  type KnownCalendars,
  readCalendars,
  unappliedSince,
} from '../../store/calendars/calendar-histories.ts';
import { mayBeOwed, recordOwed } from './owed-fires.ts';
import { shareFreeCalendars } from '../../store/calendars/share-calendars.ts';
import { recordApplied } from '../../store/calendars/write-calendars.ts';

export interface MoveNextFiresDeps {
  database: Database;
  events: EventBus;
  /** No older fire is recorded. */
  retentionDays?: number;
}

/** How far a process has come with the users of a calendar. Each edition of the calendar begins anew. */
export interface MoveProgress {
  edition: string;
  /** The uid of the last user that was seen to. */
  after: string | null;
  isAtEnd: boolean;
  /** Of a page: smaller after one that failed. */
  limit: number;
  /** Users whose next fire could not be moved, and until when (monotonic) they are left alone. */
  left: Map<string, number>;
  schedules: number;
  moved: number;
}

interface MoveOptions {
  /** Asked before each page. */
  mayGoOn: () => boolean;
  /** Whether it waits for users whose rows others have locked. */
  waits: boolean;
  /** Where the last call ended; this one changes it. */
  progress?: MoveProgress;
}

const PAGE = 500;
/** The wait before it looks again at a user of which another transaction had a row locked. */
const AGAIN_MS = 50;
/** The wait for a user whose row cannot be written. */
const REST_MS = 60_000;

export function noProgress(): MoveProgress {
  return { edition: '', after: null, isAtEnd: false, limit: PAGE, left: new Map(), schedules: 0, moved: 0 };
}

/** Answers whether all is done. What it did stays done, and the next call with the same progress goes on behind it. */
export async function moveNextFires(
  deps: MoveNextFiresDeps,
  calendarId: string,
  { mayGoOn, waits, progress = noProgress() }: MoveOptions,
): Promise<boolean> {
  const { database, events } = deps;
  const known = await database.run((db) => readCalendars(db, [calendarId], LATEST));
  const edition = known.editions.get(calendarId);
  const unapplied = known.unapplied.get(calendarId);
  if (edition === undefined || unapplied === undefined) return true;
  if (progress.edition !== edition) Object.assign(progress, noProgress(), { edition });
  const { editedAt, version } = unapplied;
  const walk = { ...deps, calendarId, editedAt, progress };
  const { left } = progress;
  while (mayGoOn()) {
    if (!progress.isAtEnd) await movePage(walk);
    else if (left.size > 0) {
      if (await moveLeft(walk)) continue;
      if (!waits || Math.min(...left.values()) > systemClock.monotonic() + AGAIN_MS) return false;
      await delay(AGAIN_MS);
    } else {
      await database.run((db) => recordApplied(db, calendarId, version));
      const { schedules, moved } = progress;
      events.emit({ type: 'nextFiresMoved', calendarId, version, schedules, moved });
      return true;
    }
  }
  return false;
}

interface MoveWalk extends MoveNextFiresDeps {
  calendarId: string;
  editedAt: Instant;
  progress: MoveProgress;
}

async function movePage(walk: MoveWalk): Promise<void> {
  const { database, calendarId, progress } = walk;
  const { after, limit } = progress;
  const page: UserPage = await database.run((db) => listCalendarUsers(db, calendarId, { after, limit }));
  const [first, ...others] = page.users;
  try {
    await moveUsers(walk, page.users);
    progress.limit = Math.min(PAGE, limit * 2);
  } catch (error) {
    // It may have been too much at once. A user that is too much alone is passed over for now.
    progress.limit = Math.max(1, Math.floor(limit / 4));
    if (!first || others.length > 0) throw error;
    setAside(walk, first, error);
  }
  progress.schedules += page.users.length;
  progress.after = page.last;
  progress.isAtEnd = page.last === null;
}

/** Users that were passed over. False: none of them may be tried yet. */
async function moveLeft(walk: MoveWalk): Promise<boolean> {
  const { database, calendarId, progress } = walk;
  const now = systemClock.monotonic();
  const due = [...progress.left]
    .flatMap(([uid, until]) => (until <= now ? [uid] : []))
    .slice(0, progress.limit);
  if (due.length === 0) return false;
  const users = await database.run((db) => findCalendarUsers(db, calendarId, due));
  for (const uid of due) progress.left.delete(uid);
  await moveUsers(walk, users).catch((error: unknown) => {
    for (const uid of due) progress.left.set(uid, now + REST_MS);
    throw error;
  });
  return true;
}

/** Where an edit or a fire is in the way of some of them, they are left for later. */
async function moveUsers(walk: MoveWalk, users: readonly CalendarUser[]): Promise<void> {
  const { database, editedAt } = walk;
  const naming = users.flatMap((user) => namingOf(user) ?? []);
  const ids = [...new Set(naming.flatMap((one) => one.ids))];
  const reach = Math.max(0, ...naming.map(({ timing }) => calendarReachOf(timing)));
  const known = await database.run((db) => readCalendars(db, ids, editedAt - reach));
  const moves: CalendarMove[] = [];
  const pace = createPace();
  for (const one of naming) {
    await pace();
    const move = moveOf(one, known);
    if (move) moves.push(move);
  }
  await inHalves(moves, {
    work: (part) => writeMoves(walk, part, known),
    faultOf: batchFaultOf,
    setAside: ({ user }, error) => setAside(walk, user, error),
  });
  for (const one of naming) {
    if (!mayBeOwed(one, known, systemClock.now())) continue;
    if (!(await recordOwed(walk, one, known)))
      walk.progress.left.set(one.user.uid, systemClock.monotonic() + AGAIN_MS);
  }
}

async function writeMoves(
  { database, progress }: MoveWalk,
  moves: readonly CalendarMove[],
  known: KnownCalendars,
): Promise<void> {
  const ids = [...known.histories.keys()];
  const moved = await database.transaction(async (tx) => {
    const editions = await shareFreeCalendars(tx, ids);
    if (ids.some((id) => editions.get(id) !== known.editions.get(id))) return new Set<string>();
    return moveCursorsUnderSharedCalendars(tx, moves);
  });
  progress.moved += moved.size;
  const until = systemClock.monotonic() + AGAIN_MS;
  for (const { user } of moves) if (!moved.has(user.uid)) progress.left.set(user.uid, until);
}

function setAside(
  { events, calendarId, progress }: MoveWalk,
  { uid, id }: CalendarUser,
  error: unknown,
): void {
  progress.left.set(uid, systemClock.monotonic() + REST_MS);
  events.emit({ type: 'nextFiresNotMoved', calendarId, scheduleId: id, error: reasonOf(error) });
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
