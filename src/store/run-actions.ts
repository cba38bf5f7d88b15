import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { AttemptError } from '../core/outcome.ts';
import type { RunState, Speaker } from '../core/run-actions.ts';
import { type RunStatus, type RunTrigger, mayBeRunId, scheduledForOf } from '../core/run.ts';
import { aftermathIn } from './dependents.ts';
import type { Executor, Transaction } from './executor.ts';
import { AFTERMATH, type Aftermath, type AftermathRow, ENDED, followEnds } from './followers.ts';
import { queueOfLane } from './lanes.ts';
import { type InstantText, rowsOf, scheduleIdOf, toInstant, toInstantOrNull } from './rows.ts';

/** A run whose row is locked until the transaction ends. */
export interface LockedRun extends RunState {
  id: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  /** Null: a one-off run. */
  scheduleId: string | null;
  trigger: RunTrigger;
  lostAt: Instant | null;
  handedOffAt: Instant | null;
  /** Of what is known of its attempts; null where nothing is. */
  firstClaimedAt: Instant | null;
}

interface Row {
  id: string;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  trigger: RunTrigger;
  status: RunStatus;
  reason: string | null;
  attempts: number;
  doubted_attempt: number | null;
  worker_id: string | null;
  open_dependencies: number | null;
  lost_at: InstantText | null;
  handed_off_at: InstantText | null;
  first_claimed_at: InstantText | null;
  /** bigint: a string on the wire. */
}

const COLUMNS = sql`r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.status, r.reason, r.attempts, r.doubted_attempt,
  r.worker_id, r.open_dependencies, r.lost_at, r.handed_off_at, r.first_claimed_at`;

/** Null: there is none of that id. What is decided of it is for a later statement: this one's snapshot is older than its lock. */
export async function lockRun(tx: Transaction, id: string): Promise<LockedRun | null> {
  return oneOf(tx, id, sql`SELECT ${COLUMNS} FROM runs r WHERE ${isRun(id)} FOR UPDATE`);
}

/** As it stands; anybody may change it. */
export async function stateOfRun(db: Executor, id: string): Promise<RunState | null> {
  return oneOf(db, id, sql`SELECT ${COLUMNS} FROM runs r WHERE ${isRun(id)}`);
}

/** Keeps the schedule of a run from being deleted until the transaction ends; false: it is gone, or the run has none. */
export async function keepScheduleOf(tx: Transaction, id: string): Promise<boolean> {
  if (!mayBeRunId(id)) return false;
  const rows = await rowsOf(
    tx,
    sql`SELECT s.uid FROM runs r JOIN schedules s ON s.uid = r.schedule_uid WHERE ${isRun(id)} FOR KEY SHARE OF s`,
  );
  return rows.length > 0;
}

export async function cancelUnderLock(tx: Transaction, { id }: LockedRun): Promise<Aftermath> {
  const [row] = await rowsOf<AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    changed AS (
      UPDATE runs r SET status = 'cancelled', reason = 'request', finished_at = clock.now, expires_at = NULL,
        updated_at = clock.now
      FROM clock WHERE ${isRun(id)}
      RETURNING ${ENDED}
    ), ${followEnds(sql`changed`)}
    SELECT ${AFTERMATH} FROM aftermath`,
  );
  return aftermathIn(tx, row);
}

/**
 * Opens it again, under the present version of its schedule where it has one; what it has been through (attempts, found lost) stays.
 * That its end matters is said of every run of a schedule, whatever that says of overlap: it may be edited so at this moment.
 * Answers the queue that it is to be pulled from, if it is.
 */
export async function retryUnderLock(
  tx: Transaction,
  { id, scheduleUid }: LockedRun,
  status: 'pending' | 'waiting',
): Promise<{ queue: string | null }> {
  const [row] = await rowsOf<{ lane: string }>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    UPDATE runs r SET status = ${status}, due_at = clock.now, updated_at = clock.now,
      schedule_version = coalesce(s.version, r.schedule_version), lane = coalesce(s.lane, r.lane),
      priority = coalesce(s.priority, r.priority), overlap_guarded = s.uid IS NOT NULL,
      failures = 0, recoveries = 0, recovered_at = NULL, lookups = 0, in_doubt_until = NULL, doubted_attempt = NULL, retried_after = r.attempts,
      claimed_by = NULL, claimed_at = NULL, first_claimed_at = NULL, handoff_started_at = NULL, handed_off_at = NULL, finished_at = NULL,
      reason = NULL, error = NULL, result_status_code = NULL, result_body = NULL, execution_id = NULL,
      expires_at = NULL, lease_seconds = NULL, worker_id = NULL, progress = NULL, failed_dependency = NULL
    FROM clock LEFT JOIN schedules s ON s.uid = ${scheduleUid}
    WHERE ${isRun(id)}
    RETURNING r.lane`,
  );
  return { queue: row ? queueOfLane(row.lane) : null };
}

export interface ReportedEnd {
  status: 'succeeded' | 'failed';
  error: AttemptError | null;
  /** Null: what the target answered stays. */
  result: string | null;
}

/**
 * Whoever reports the end of a run has it: it was handed off, at the latest now. The attempt's own outcome may still be on its way,
 * so its start is taken from the claim where nothing better is known.
 */
export async function completeUnderLock(
  tx: Transaction,
  { id }: LockedRun,
  { status, error, result }: ReportedEnd,
): Promise<{ finishedAt: Instant; aftermath: Aftermath }> {
  const [row] = await rowsOf<{ finished_at: InstantText } & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    changed AS (
      UPDATE runs r SET status = ${status}, reason = NULL, error = ${error && JSON.stringify(error)}::text::jsonb,
        result_status_code = CASE WHEN r.status = 'running' AND ${result}::text IS NULL THEN r.result_status_code END,
        progress = CASE WHEN ${status} = 'succeeded' AND r.progress IS NOT NULL THEN 1 ELSE r.progress END,
        result_body = coalesce(${result}::text, CASE WHEN r.status = 'running' THEN r.result_body END),
        -- An instance's idea of the database's time may be a little ahead of it.
        finished_at = greatest(clock.now, r.handed_off_at),
        handoff_started_at = coalesce(r.handoff_started_at, r.claimed_at),
        handed_off_at = coalesce(r.handed_off_at, clock.now), expires_at = NULL, in_doubt_until = NULL,
        lateness_ms = coalesce(r.lateness_ms,
          (extract(epoch FROM coalesce(r.handoff_started_at, r.claimed_at) - r.due_at) * 1000)::bigint),
        updated_at = clock.now
      FROM clock WHERE ${isRun(id)}
      RETURNING ${ENDED}
    ), ${followEnds(sql`changed`)}
    SELECT changed.finished_at, ${AFTERMATH} FROM changed, aftermath`,
  );
  if (!row) throw new Error('the statement of a completion answered no row');
  return { finishedAt: toInstant(row.finished_at), aftermath: await aftermathIn(tx, row) };
}

/**
 * Puts off when the run expires, by its own lease, and keeps the progress where it is said; false: it is not under way, or not with
 * who speaks. In one statement: a guard on one row sees it as it is once its lock is had.
 */
export async function heartbeatIfCurrent(
  db: Executor,
  id: string,
  { attempt, workerId, progress }: Speaker & { progress: number | null },
): Promise<boolean> {
  if (!mayBeRunId(id)) return false;
  const rows = await rowsOf(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    UPDATE runs r SET progress = coalesce(${progress}::float8, r.progress), updated_at = clock.now,
      expires_at = CASE WHEN r.status = 'running'
        THEN greatest(clock.now + make_interval(secs => r.lease_seconds), r.expires_at) END
    FROM clock WHERE ${isRun(id)}
      AND CASE r.status WHEN 'running' THEN true WHEN 'pending' THEN r.attempts > 0 END
      AND coalesce(r.attempts = ${attempt}::float8
        OR r.attempts > ${attempt}::float8 AND r.doubted_attempt <= ${attempt}::float8, ${attempt}::float8 IS NULL)
      AND coalesce(r.worker_id = ${workerId}::text, ${workerId}::text IS NULL)
    RETURNING r.id`,
  );
  return rows.length > 0;
}

/** By its key: the id carries the first column of it. */
function isRun(id: string): SQL {
  return sql`r.scheduled_for = ${isoInstant(scheduledForOf(id))}::timestamptz AND r.id = ${id}::uuid`;
}

async function oneOf(db: Executor, id: string, statement: SQL): Promise<LockedRun | null> {
  if (!mayBeRunId(id)) return null;
  const [row] = await rowsOf<Row>(db, statement);
  return row ? lockedRun(row) : null;
}

function lockedRun(row: Row): LockedRun {
  const scheduledFor = scheduledForOf(row.id);
  return {
    id: row.id,
    scheduledFor,
    scheduleUid: row.schedule_uid,
    scheduleVersion: row.schedule_version,
    scheduleId: scheduleIdOf(row.schedule_id),
    trigger: row.trigger,
    status: row.status,
    reason: row.reason,
    attempts: row.attempts,
    doubtedAttempt: row.doubted_attempt,
    workerId: row.worker_id,
    openDependencies: row.open_dependencies,
    lostAt: toInstantOrNull(row.lost_at),
    handedOffAt: toInstantOrNull(row.handed_off_at),
    firstClaimedAt: toInstantOrNull(row.first_claimed_at),
  };
}
