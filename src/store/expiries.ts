import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import type { Settlement } from '../core/settlement.ts';
import { instants, ints, texts, uuids } from './arrays.ts';
import { aftermathIn } from './dependents.ts';
import type { Executor, Transaction } from './executor.ts';
import { AFTERMATH, type Aftermath, type AftermathRow, ENDED, followEnds } from './followers.ts';
import { queueOfLane } from './lanes.ts';
import { runsByKey } from './by-key.ts';
import { sinceDayOf } from './open-runs.ts';
import {
  type InstantText,
  frequentRowsOf,
  rowsOf,
  scheduleIdOf,
  toInstant,
  toInstantOrNull,
} from './rows.ts';

/** A running run that neither its worker nor its target was heard of in time. */
export interface SilentRun {
  id: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  scheduleId: string | null;
  attempt: number;
  failures: number;
  startedAt: Instant;
  /** Of its first attempt. */
  firstClaimedAt: Instant | null;
  /** Null: it is not pulled. */
  queue: string | null;
  workerId: string | null;
  expiresAt: Instant;
}

interface Row {
  id: string;
  scheduled_for: InstantText;
  schedule_uid: string;
  schedule_version: number;
  schedule_id: string;
  lane: string;
  attempts: number;
  failures: number;
  started_at: InstantText;
  first_claimed_at: InstantText | null;
  worker_id: string | null;
  expires_at: InstantText;
  now: InstantText;
}

/** Since when anybody can be heard of, and how much of its lease, at most, a run gets from then on. */
export interface Hearing {
  since: Instant;
  graceSeconds: number;
}

/**
 * The longest silent first, and at which moment that was so. From when it could be heard of again each gets half its lease: those who
 * are heard of every third of it come to speak.
 */
export async function findSilent(
  db: Executor,
  openSince: Instant,
  { since, graceSeconds }: Hearing,
  limit: number,
): Promise<{ runs: SilentRun[]; now: Instant }> {
  const rows = await frequentRowsOf<Row>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT r.id, r.scheduled_for, r.schedule_uid, r.schedule_version, r.schedule_id, r.lane, r.attempts, r.failures,
      coalesce(r.handoff_started_at, r.claimed_at, r.expires_at) AS started_at, r.first_claimed_at, r.worker_id,
      r.expires_at, clock.now
    FROM clock, runs r
    WHERE r.status = 'running' AND r.expires_at <= (SELECT now FROM clock) AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
      AND clock.now >= ${isoInstant(since)}::timestamptz
        + make_interval(secs => least(coalesce(r.lease_seconds, 0) / 2, ${graceSeconds}::float8))
    ORDER BY r.expires_at LIMIT ${limit}`,
  );
  const [first] = rows;
  return { runs: rows.map(silentRun), now: first ? toInstant(first.now) : since };
}

/** What becomes of a silent run. */
export interface Expiry {
  run: SilentRun;
  settlement: Settlement;
}

/**
 * Settles them where they are silent still, in the same attempt: whoever was heard of meanwhile goes on. Rows that somebody else works
 * on are passed over. The attempt's entry in the log says that it expired, whatever was known of it before. Answers the ids of those
 * it settled.
 */
export async function expireIfStillSilent(
  tx: Transaction,
  expiries: readonly Expiry[],
  { wait = false }: { wait?: boolean } = {},
): Promise<{ ids: ReadonlySet<string>; aftermath: Aftermath }> {
  const times = expiries.map(({ run }) => run.scheduledFor);
  const rows = await rowsOf<{ id: string | null } & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    input AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(expiries.map(({ run }) => run.id))}, ${instants(expiries.map(({ run }) => run.scheduledFor))},
        ${ints(expiries.map(({ run }) => run.attempt))}, ${texts(expiries.map(({ settlement }) => settlement.status))},
        ${ints(expiries.map(({ settlement }) => settlement.failures))},
        ${instants(expiries.map(({ settlement }) => settlement.retryAt))},
        ${instants(expiries.map(({ settlement }) => settlement.doubt?.until ?? null))},
        ${ints(expiries.map(({ settlement }) => settlement.doubt?.lookups ?? 0))},
        ${texts(expiries.map(({ settlement }) => settlement.error && JSON.stringify(settlement.error)))})
        AS i(id, scheduled_for, attempt, status, failures, retry_at, in_doubt_until, lookups, error)
    ), locked AS MATERIALIZED (
      SELECT i.*, r.claimed_by, coalesce(r.handoff_started_at, r.claimed_at, clock.now) AS started_at,
        r.result_status_code, r.recoveries
      FROM clock, input i JOIN runs r ON ${runsByKey(sql`r`, sql`i`, times)}
      WHERE CASE WHEN r.status = 'running' THEN r.attempts = i.attempt AND r.expires_at <= clock.now END
      ORDER BY r.scheduled_for, r.id FOR UPDATE OF r ${wait ? sql`` : sql`SKIP LOCKED`}
    ), changed AS (
      UPDATE runs r SET status = l.status, failures = l.failures, due_at = coalesce(l.retry_at, r.due_at),
        in_doubt_until = l.in_doubt_until, lookups = l.lookups,
        doubted_attempt = CASE WHEN l.in_doubt_until IS NOT NULL THEN coalesce(r.doubted_attempt, r.attempts) END, error = l.error::jsonb, expires_at = NULL,
        claimed_by = CASE WHEN l.status <> 'pending' THEN r.claimed_by END,
        claimed_at = CASE WHEN l.status <> 'pending' THEN r.claimed_at END,
        handoff_started_at = CASE WHEN l.status <> 'pending' THEN r.handoff_started_at END,
        handed_off_at = CASE WHEN l.status <> 'pending' OR l.in_doubt_until IS NOT NULL THEN r.handed_off_at END,
        finished_at = CASE WHEN l.status <> 'pending' THEN clock.now END, updated_at = clock.now
      FROM locked l, clock WHERE ${runsByKey(sql`r`, sql`l`, times)}
      RETURNING ${ENDED}
    ), ${followEnds(sql`changed`)}, logged AS (
      INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, status_code,
        error, recovery)
      SELECT l.id, l.scheduled_for, l.attempt, coalesce(l.claimed_by, ${NOBODY}::uuid), l.started_at, clock.now, 'unknown',
        l.result_status_code, l.error::jsonb, l.recoveries > 0
      FROM locked l, clock
      ON CONFLICT (scheduled_for, run_id, attempt) DO UPDATE SET finished_at = excluded.finished_at,
        outcome = excluded.outcome, error = excluded.error
    )
    SELECT changed.id, ${AFTERMATH} FROM aftermath LEFT JOIN changed ON true`,
  );
  return {
    ids: new Set(rows.flatMap(({ id }) => id ?? [])),
    aftermath: await aftermathIn(tx, rows[0]),
  };
}

/** The log names an instance; a row by a foreign hand may have none. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

function silentRun(row: Row): SilentRun {
  const scheduledFor = toInstant(row.scheduled_for);
  return {
    id: row.id,
    scheduledFor,
    scheduleUid: row.schedule_uid,
    scheduleVersion: row.schedule_version,
    scheduleId: scheduleIdOf(row.schedule_id),
    attempt: row.attempts,
    failures: row.failures,
    startedAt: toInstant(row.started_at),
    firstClaimedAt: toInstantOrNull(row.first_claimed_at),
    queue: queueOfLane(row.lane),
    workerId: row.worker_id,
    expiresAt: toInstant(row.expires_at),
  };
}
