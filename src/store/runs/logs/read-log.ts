import { sql } from 'drizzle-orm';
import {
  type LogChunk,
  type LogPart,
  type LogRoom,
  type LogState,
  MAX_APPENDED,
  MAX_LOG_PART,
  isAttemptOver,
  logDayOf,
  partOf,
} from '../../../core/runs/run-log.ts';
import { queueOfLane } from '../../../core/runs/run-lane.ts';
import { mayBeRunId } from '../../../core/runs/run.ts';
import { anyUid, instants, ints, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';
import { logRows } from './append-log.ts';

interface LoggedRun extends LogState {
  queue: string | null;
}

/** What is read of the log of a run. */
export interface ReadLog extends LogPart {
  /** Null: it is no pull run. */
  queue: string | null;
  attempt: number;
  /** The attempt is over, and nothing comes after this part. */
  isComplete: boolean;
}

interface LogQuestion {
  runId: string;
  /** Null: the newest, or the one to come. */
  attempt: number | null;
  offset: number;
}

/** As much as one answer has of what is kept of a log from an offset on; null: there is no such run. */
export async function readLog(
  db: Executor,
  { runId, offset, ...asked }: LogQuestion,
  room: LogRoom,
): Promise<ReadLog | null> {
  const run = await findLoggedRun(db, runId);
  if (run === null) return null;
  const attempt = asked.attempt ?? Math.max(1, run.attempts);
  const { isLast, ...part } = await readLogPart(db, { runId, attempt, offset }, room);
  // In this order: what was appended before the end is in the part.
  return { ...part, attempt, queue: run.queue, isComplete: isLast && isAttemptOver(run, attempt) };
}

interface StateRow {
  status: LogState['status'];
  attempts: number;
  claimed_by: string | null;
  lane: string;
}

/** Looks among open runs first, which costs nothing in the days of history; asks twice, since a run moves between the two tables. */
async function findLoggedRun(db: Executor, id: string): Promise<LoggedRun | null> {
  if (!mayBeRunId(id)) return null;
  for (const table of ['runs', 'history', 'runs', 'history']) {
    const [row] = await rowsOf<StateRow>(db)(sql`-- findLoggedRun
      SELECT status, attempts, claimed_by, lane FROM ${sql.raw(table)} WHERE id = ${id}::uuid`);
    if (row) return { ...stateOf(row), queue: queueOfLane(row.lane) };
  }
  return null;
}

function stateOf({ status, attempts, claimed_by: claimedBy }: Omit<StateRow, 'lane'>): LogState {
  return { status, attempts, claimedBy };
}

interface PartRow {
  end_place: string;
  end_offset: string;
  place: string | null;
  at_offset: string;
  bytes: Buffer;
}

/** `isLast`: nothing had been appended after it at that moment. */
async function readLogPart(
  db: Executor,
  { runId, attempt, offset }: LogPosition,
  room: LogRoom,
): Promise<LogPart & { isLast: boolean }> {
  const ofLog = logRows(runId, attempt);
  const rows = await rowsOf<PartRow>(db)(sql`-- readLogPart
    WITH ends AS MATERIALIZED (
      SELECT place + octet_length(bytes) AS place, at_offset + octet_length(bytes) AS at_offset
      FROM run_logs l WHERE ${ofLog} ORDER BY place DESC LIMIT 1
    )
    SELECT ends.place AS end_place, ends.at_offset AS end_offset, c.place, c.at_offset, c.bytes FROM ends LEFT JOIN LATERAL (
      SELECT * FROM (
        SELECT l.place, l.at_offset, l.bytes,
          sum(octet_length(l.bytes)) OVER (ORDER BY l.place ROWS UNBOUNDED PRECEDING) - octet_length(l.bytes) AS before
        FROM run_logs l WHERE ${ofLog} AND l.at_offset + octet_length(l.bytes) > ${offset}::bigint
          AND (l.place < ${room.head}::bigint OR l.place + octet_length(l.bytes) > ends.place - ${room.tail}::bigint)
      ) AS kept WHERE before < ${MAX_LOG_PART + MAX_APPENDED}) AS c ON true
    ORDER BY c.place`);
  const [first] = rows;
  const end = { place: Number(first?.end_place ?? 0), offset: Number(first?.end_offset ?? 0) };
  const part = partOf(rows.flatMap(chunkOf), offset, end, room);
  return { ...part, isLast: part.next >= end.offset };
}

function chunkOf({ place, at_offset: offset, bytes }: PartRow): LogChunk[] {
  return place === null ? [] : [{ place: Number(place), offset: Number(offset), bytes }];
}

/** Where somebody reads in a log. */
export interface LogPosition {
  runId: string;
  attempt: number;
  offset: number;
}

interface NewsRow extends Omit<StateRow, 'status' | 'lane'> {
  position: number;
  /** Null: it is not among the open runs. */
  status: LogState['status'] | null;
  end_offset: string | null;
}

/** At which of these positions there is something to say: more bytes, or that the attempt is over. One statement for all of them. */
export async function positionsWithNews(
  db: Executor,
  positions: readonly LogPosition[],
): Promise<ReadonlySet<LogPosition>> {
  const days = positions.map(({ runId }) => logDayOf(runId));
  const rows = await rowsOf<NewsRow>(db)(sql`-- positionsWithNews
    SELECT p.n::int AS position, r.status, r.attempts, r.claimed_by, (
        SELECT l.at_offset + octet_length(l.bytes) FROM run_logs l
        WHERE l.day = ANY (array_append(${instants([...new Set(days)])}, 'infinity')) AND l.run_id = p.run_id AND l.attempt = p.attempt
        ORDER BY l.place DESC LIMIT 1) AS end_offset
    FROM unnest(${uuids(positions.map(({ runId }) => runId))}, ${ints(positions.map(({ attempt }) => attempt))})
      WITH ORDINALITY AS p(run_id, attempt, n)
    LEFT JOIN runs r ON r.id = p.run_id AND ${anyUid(sql`p.run_id`)}`);
  return new Set(
    rows.flatMap(({ position, end_offset: end, status, ...row }) => {
      const at = positions[position - 1];
      if (at === undefined) return [];
      const isOver = status === null || isAttemptOver(stateOf({ status, ...row }), at.attempt);
      return isOver || Number(end ?? 0) > at.offset ? [at] : [];
    }),
  );
}
