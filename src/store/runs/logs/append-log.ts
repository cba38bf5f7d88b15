import { sql } from 'drizzle-orm';
import type { RunState } from '../../../core/runs/run-decisions.ts';
import { isoInstant } from '../../../core/instant.ts';
import { type LogRoom, logDayOf } from '../../../core/runs/run-log.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { rowsOf } from '../../../postgres/sql/rows.ts';

/** What of a run decides whether its log takes more. */
interface LoggingRun extends Omit<RunState, 'openDependencies'> {
  /** Null: it has not ended. */
  endedMsAgo: number | null;
}

interface LoggingRow {
  trigger: LoggingRun['trigger'];
  status: LoggingRun['status'];
  reason: string | null;
  attempts: number;
  observed: boolean;
  attempt_in_doubt: number | null;
  worker_id: string | null;
  ended_ms_ago: number | null;
}

/** The tables of runs, and what each says of the end. */
const OPEN = { table: sql.raw('runs'), end: sql`NULL AS reason, NULL AS ended_ms_ago` };
const ENDED = {
  table: sql.raw('history'),
  end: sql`reason, extract(epoch FROM clock_timestamp() - finished_at)::float8 * 1000 AS ended_ms_ago`,
};

/**
 * Locks the row of a run, open or ended, and answers no more of it than its log needs: it may carry a payload. Null: there is none. Asks
 * twice, as lockRun does.
 */
export async function lockLoggingRun(tx: Transaction, id: string): Promise<LoggingRun | null> {
  for (const { table, end } of [OPEN, ENDED, OPEN, ENDED]) {
    const [row] = await rowsOf<LoggingRow>(tx)(sql`-- lockLoggingRun
      SELECT trigger, status, attempts, observed, attempt_in_doubt, worker_id, ${end} FROM ${table} WHERE id = ${id}::uuid FOR UPDATE`);
    if (!row) continue;
    const { attempt_in_doubt: attemptInDoubt, worker_id: workerId, ended_ms_ago: endedMsAgo, ...state } = row;
    return { ...state, attemptInDoubt, workerId, endedMsAgo };
  }
  return null;
}

export interface LogAppend {
  attempt: number;
  offset: number;
  bytes: Buffer;
}

/**
 * A chunk takes what comes after it until it has so many bytes. Such a row lies in its page, without a second table for what is long; a
 * longer one costs no more rows than that second table would have.
 */
const JOINED_BYTES = 1_900;
/** What a gap counts in `place`: else gaps without end would be rows without end. */
const GAP_BYTES = 1_024;

/**
 * Appends to the log of an attempt what is not there yet, and drops from its middle what is not to be kept; answers how many bytes are new.
 * The lock of the run makes its appends come one by one, each with a snapshot of its own.
 */
export async function appendToLockedLog(
  tx: Transaction,
  runId: string,
  { attempt, offset, bytes }: LogAppend,
  { head, tail }: LogRoom,
): Promise<number> {
  const ofLog = logRows(runId, attempt);
  const [row] = await rowsOf<{ written: number }>(tx)(sql`-- appendToLockedLog
    WITH last AS MATERIALIZED (
      SELECT day, place, at_offset, octet_length(bytes) AS size FROM run_logs l WHERE ${ofLog} ORDER BY place DESC LIMIT 1
    ), ends AS MATERIALIZED (
      SELECT coalesce(max(at_offset + size), 0) AS at_offset, coalesce(max(place + size), 0) AS place FROM last
    ), part AS MATERIALIZED (
      SELECT greatest(sent.at_offset, ends.at_offset) AS at_offset,
        ends.place + CASE WHEN sent.at_offset > ends.at_offset THEN ${GAP_BYTES} ELSE 0 END AS place,
        substring(sent.bytes FROM greatest(ends.at_offset - sent.at_offset, 0)::int + 1) AS bytes
      FROM ends, (SELECT ${offset}::bigint AS at_offset, ${bytes}::bytea AS bytes) AS sent
      WHERE sent.at_offset + octet_length(sent.bytes) > ends.at_offset
    ), joined AS (
      UPDATE run_logs l SET bytes = l.bytes || part.bytes FROM last, part
      WHERE ${ofLog} AND l.day = last.day AND l.place = last.place
        AND part.at_offset = last.at_offset + last.size AND last.size + octet_length(part.bytes) <= ${JOINED_BYTES}
      RETURNING 1
    ), added AS (
      INSERT INTO run_logs (day, run_id, attempt, place, at_offset, bytes)
      SELECT CASE WHEN clock_timestamp() < ${dayText(runId)}::timestamptz + ${OWN_DAYS} THEN ${dayText(runId)}::timestamptz
        ELSE 'infinity' END, ${runId}::uuid, ${attempt}::int, place, at_offset, bytes
      FROM part WHERE NOT EXISTS (SELECT FROM joined)
    ), trimmed AS (
      DELETE FROM run_logs l USING part, last
      WHERE ${ofLog} AND l.place >= ${head}::bigint AND l.place < last.place
        AND l.place <= part.place + octet_length(part.bytes) - ${tail}::bigint
        AND l.place + octet_length(l.bytes) <= part.place + octet_length(part.bytes) - ${tail}::bigint
    )
    SELECT octet_length(bytes) AS written FROM part`);
  return row?.written ?? 0;
}

/** How long the logs of a day are written to it: as much longer than history its partition is kept (drop-partitions.ts). */
export const LOG_DAYS_LATER = 2;
const OWN_DAYS = sql.raw(`interval '${1 + LOG_DAYS_LATER} days'`);

/** The rows `l` of the log of one attempt: in one partition, but for what came days later. */
export function logRows(runId: string, attempt: number) {
  return sql`l.day IN (${dayText(runId)}::timestamptz, 'infinity') AND l.run_id = ${runId}::uuid AND l.attempt = ${attempt}::int`;
}

function dayText(runId: string): string {
  return isoInstant(logDayOf(runId));
}

/** Whether anything was appended to the log of this attempt. */
export async function hasRunLog(db: Executor, runId: string, attempt: number): Promise<boolean> {
  const rows = await rowsOf(db)(sql`-- hasRunLog
    SELECT 1 FROM run_logs l WHERE ${logRows(runId, attempt)} LIMIT 1`);
  return rows.length > 0;
}
