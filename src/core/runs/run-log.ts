import { type Instant, dayOf } from '../instant.ts';
import { type RunStatus, isEnd, scheduledForOf } from './run.ts';

/** What is kept of the log of one attempt, in bytes: so many of its first, and so many of its newest. */
export interface LogRoom {
  head: number;
  tail: number;
}

/** `kib`: FIRELOCK_RUN_LOG_KIB. A quarter of it for the beginning, which says what began, and the rest for how it ended. */
export function logRoom(kib: number): LogRoom {
  return { head: kib * 256, tail: kib * 768 };
}

/** The most bytes of one append. */
export const MAX_APPENDED = 64 * 1024;
/** The most bytes of one answer. */
export const MAX_LOG_PART = 256 * 1024;
/** The largest offset that an append may name. */
export const MAX_LOG_OFFSET = Number.MAX_SAFE_INTEGER - MAX_APPENDED;

/** The day whose logs this run's belong to. */
export function logDayOf(runId: string): Instant {
  return dayOf(scheduledForOf(runId));
}

/** The fields of a run that say whether more is to come. */
export interface LogState {
  status: RunStatus;
  attempts: number;
  claimedBy: string | null;
}

/** Between attempts, the last one is over. One that has not begun is not, as long as it may. */
export function isAttemptOver({ status, attempts, claimedBy }: LogState, attempt: number): boolean {
  if (isEnd(status) || attempt < attempts) return true;
  return attempt === attempts && status !== 'running' && claimedBy === null;
}

/** Bytes as they were appended. `place`: how much lies before them, without what was left out; `offset`: as their writer counts. */
export interface LogChunk {
  place: number;
  offset: number;
  bytes: Buffer;
}

/** The place and the offset after the last byte. */
interface LogEnd {
  place: number;
  offset: number;
}

export interface LogPart {
  bytes: Buffer;
  /** Where the next part begins. */
  next: number;
  /** What was left out between the offset that was asked for and the first of these bytes. */
  skipped: number;
}

/**
 * The first of what is kept from an offset on, as far as nothing is left out in between. `chunks`: in their order, at least so many from
 * there on that an answer is full. Whatever the store still has beyond what is to be kept is left out.
 */
export function partOf(chunks: readonly LogChunk[], asked: number, end: LogEnd, room: LogRoom): LogPart {
  const pieces: Buffer[] = [];
  let [from, next, size] = [asked, asked, 0];
  for (const { offset, bytes } of chunks.flatMap((chunk) => keptOf(chunk, end, room))) {
    const piece = bytes.subarray(Math.max(0, asked - offset));
    if (piece.length === 0) continue;
    const at = Math.max(asked, offset);
    if (size === 0) from = at;
    else if (at !== next) break;
    const taken = piece.subarray(0, MAX_LOG_PART - size);
    pieces.push(taken);
    size += taken.length;
    next = at + taken.length;
    if (size === MAX_LOG_PART) break;
  }
  if (size === 0) from = next = Math.max(asked, end.offset);
  return { bytes: Buffer.concat(pieces), next, skipped: from - asked };
}

/** A chunk may reach beyond the beginning that is kept, and begin before the end that is. */
function keptOf({ place, offset, bytes }: LogChunk, end: LogEnd, { head, tail }: LogRoom) {
  const [untilHead, fromTail] = [head - place, end.place - tail - place];
  if (fromTail <= Math.max(0, untilHead)) return [{ offset, bytes }];
  const first = bytes.subarray(0, Math.max(0, untilHead));
  return [
    { offset, bytes: first },
    { offset: offset + fromTail, bytes: bytes.subarray(fromTail) },
  ];
}
