import { randomUUID } from 'node:crypto';
import type { WalkPosition } from '../../store/calendars/calendar-cursors.ts';

/** How far a process has come with the users of a calendar. Each edition of the calendar begins anew. */
export interface MoveProgress {
  edition: string;
  version: number;
  /** Under this id it walks alone; false: it does not walk yet, or another one has taken over. */
  walker: string;
  isTaken: boolean;
  /** First the next fires of all users are moved; then what is owed to some is recorded. */
  isOwing: boolean;
  /** The uid of the last user that was seen to. */
  after: string | null;
  isAtEnd: boolean;
  /** A user was seen to whom a fire may be owed; or it is not known of all. */
  mayOwe: boolean;
  /** Who has walked before has left some users: it walks along all of them once more. */
  walksAgain: boolean;
  /** Of a page: smaller after one that failed. */
  limit: number;
  /** Users whose next fire could not be moved, and until when (monotonic) they are left alone. */
  left: Map<string, number>;
  schedules: number;
  moved: number;
}

export const PAGE = 500;

export function noProgress(): MoveProgress {
  return {
    ...{ edition: '', version: 0, walker: randomUUID(), isTaken: false },
    ...{ isOwing: false, after: null, isAtEnd: false, mayOwe: false, walksAgain: false },
    ...{ limit: PAGE, left: new Map(), schedules: 0, moved: 0 },
  };
}

export function positionOf({ isOwing: owing, after, left, walksAgain }: MoveProgress): WalkPosition {
  return { owing, after, hasLeft: left.size > 0 || walksAgain };
}

/** Goes on where another walker has ended. */
export function goOnAt(progress: MoveProgress, { owing, after, hasLeft }: WalkPosition): void {
  // What the other one has seen is not known.
  const mayOwe = owing || after !== null;
  Object.assign(progress, { isTaken: true, isOwing: owing, after, mayOwe, walksAgain: hasLeft });
}

/** The end of a page; `last`: the uid behind which the next one begins, null: there is none. */
export function passPage(progress: MoveProgress, last: string | null): void {
  progress.after = last;
  progress.isAtEnd = last === null;
  if (!progress.isAtEnd || progress.isOwing || !progress.mayOwe) return;
  progress.isOwing = true;
  progress.isAtEnd = false;
}

/** Once more from the first user on. */
export function walkAgain(progress: MoveProgress): void {
  Object.assign(progress, { isOwing: false, after: null, isAtEnd: false, mayOwe: false, walksAgain: false });
}
