import { sql } from 'drizzle-orm';
import type { AttemptOutcome, LookedUp } from '../core/attempt-log.ts';
import type { Instant } from '../core/instant.ts';
import type { Settlement } from '../core/settlement.ts';
import { bigints, booleans, instants, ints, texts, uuids } from './arrays.ts';
import type { Claim } from './claims.ts';
import type { Executor } from './executor.ts';
import { AFTERMATH, type Aftermath, type AftermathRow, aftermathOf, followEnds } from './followers.ts';
import { rowsOf } from './rows.ts';

/** What became of one attempt, with the claim it was made under. */
export interface AttemptSettlement extends Claim {
  settlement: Settlement;
  outcome: AttemptOutcome;
  startedAt: Instant;
  finishedAt: Instant;
  /** Of the first attempt only. */
  latenessMs: number | null;
  recovery: boolean;
  /** What the target said of an earlier attempt; `arrived`: nothing was sent. */
  lookup: LookedUp | null;
}

/** The runs that a batch settled, by id, with whether each had once been found lost; and what their ends brought about. */
export interface Settled {
  runs: ReadonlyMap<string, { wasLost: boolean }>;
  /** Those of the others that firelock itself had ended meanwhile: replaced, or with their schedule. */
  ended: ReadonlySet<string>;
  aftermath: Aftermath;
}

/**
 * Writes outcomes, one statement for the batch; answers the runs it settled. The guard is the claim the
 * attempt was made under; only a 2xx settles whatever is still pending, whoever claims it now: it is the truth.
 * A plain first-attempt success leaves no row in the log, as its run tells all of it; what recovery wrote there of an
 * attempt it knew nothing of gives way to what is known now. Callers sort by (scheduledFor, id).
 * The guard is a CASE so that the planner cannot take it for a filter: statistics call pending runs rare, and it would
 * begin with all of them instead of with the batch's keys. No run may be in the batch twice.
 */
export async function settleRunsIfClaimed(
  db: Executor,
  settled: readonly AttemptSettlement[],
): Promise<Settled> {
  return settle(db, settled, false);
}

/** A batch that was settled again, and the runs of it that somebody else works on right now. */
export interface SettledAgain extends Settled {
  passedOver: ReadonlySet<string>;
}

/**
 * The same for a batch whose earlier statement may have been committed unseen: what that settled counts as settled. It may
 * be under way still, so its rows are locked first: a statement's own wait for them would end with its old snapshot. Rows that
 * others hold are passed over.
 */
export async function settleAgainIfClaimed(
  tx: Executor,
  outcomes: readonly AttemptSettlement[],
): Promise<SettledAgain> {
  const keys = sql`unnest(${instants(outcomes.map((row) => row.scheduledFor))},
    ${uuids(outcomes.map((row) => row.runId))}) AS i(scheduled_for, id)`;
  const found = sql`FROM ${keys} JOIN runs r ON r.scheduled_for = i.scheduled_for AND r.id = i.id`;
  const locked = await rowsOf<{ id: string }>(
    tx,
    sql`SELECT r.id ${found} ORDER BY r.scheduled_for, r.id FOR UPDATE OF r SKIP LOCKED`,
  );
  const free = new Set(locked.map((row) => row.id));
  const held =
    free.size === outcomes.length ? [] : await rowsOf<{ id: string }>(tx, sql`SELECT r.id ${found}`);
  const settled = await settle(
    tx,
    outcomes.filter((row) => free.has(row.runId)),
    true,
  );
  return {
    ...settled,
    passedOver: new Set(held.map((row) => row.id).filter((id) => !free.has(id))),
  };
}

async function settle(
  db: Executor,
  settled: readonly AttemptSettlement[],
  repeated: boolean,
): Promise<Settled> {
  const instantsOf = settled.map((row) => row.scheduledFor);
  const rows = await rowsOf<
    { id: string | null; was_lost: boolean; ended_before: string | null } & AftermathRow
  >(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    input AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(settled.map((row) => row.runId))}, ${instants(instantsOf)},
        ${uuids(settled.map((row) => row.instanceId))}, ${ints(settled.map((row) => row.attempt))},
        ${texts(settled.map((row) => row.settlement.status))}, ${ints(settled.map((row) => row.settlement.failures))},
        ${instants(settled.map((row) => row.settlement.retryAt))},
        ${instants(settled.map((row) => row.settlement.doubt?.until ?? null))},
        ${ints(settled.map((row) => row.settlement.doubt?.lookups ?? 0))},
        ${texts(settled.map((row) => row.settlement.executionId))},
        ${ints(settled.map((row) => row.settlement.statusCode))}, ${texts(settled.map((row) => row.settlement.body))},
        ${texts(settled.map((row) => (row.settlement.error ? JSON.stringify(row.settlement.error) : null)))},
        ${texts(settled.map((row) => row.outcome))}, ${instants(settled.map((row) => row.startedAt))},
        ${instants(settled.map((row) => row.finishedAt))}, ${bigints(settled.map((row) => row.latenessMs))},
        ${booleans(settled.map((row) => row.recovery))}, ${texts(settled.map((row) => row.lookup))})
        AS i(id, scheduled_for, claimed_by, attempt, status, failures, retry_at, in_doubt_until, lookups, execution_id,
          status_code, body, error, outcome, started_at, finished_at, lateness_ms, recovery, lookup)
    ), settled AS (
      UPDATE runs r SET status = i.status, failures = i.failures, due_at = coalesce(i.retry_at, r.due_at),
        claimed_by = CASE WHEN i.status = 'pending' THEN NULL ELSE i.claimed_by END,
        claimed_at = CASE WHEN i.status = 'pending' THEN NULL ELSE r.claimed_at END,
        handoff_started_at = CASE WHEN i.status <> 'pending' AND i.lookup IS DISTINCT FROM 'arrived' THEN i.started_at END,
        handed_off_at = CASE WHEN i.outcome = 'accepted' THEN i.finished_at END,
        finished_at = CASE WHEN i.status <> 'pending' THEN i.finished_at END,
        in_doubt_until = i.in_doubt_until, lookups = i.lookups,
        lateness_ms = coalesce(r.lateness_ms, i.lateness_ms), execution_id = i.execution_id,
        result_status_code = i.status_code, result_body = i.body, error = i.error::jsonb, updated_at = clock.now
      FROM input i, clock
      WHERE r.scheduled_for = i.scheduled_for AND r.id = i.id
        AND CASE WHEN r.status = 'pending'
          THEN i.outcome = 'accepted' OR r.claimed_by = i.claimed_by AND r.attempts = i.attempt END
      RETURNING r.id, i.attempt, r.attempts, r.lost_at, r.schedule_uid, r.status, r.finished_at, r.overlap_guarded
    ), ${followEnds(sql`settled`)}, before AS (
      SELECT r.id, i.attempt, r.attempts, r.lost_at FROM input i
      JOIN runs r ON r.scheduled_for = i.scheduled_for AND r.id = i.id
      WHERE ${repeated} AND r.status = i.status AND CASE WHEN r.status = 'pending'
        THEN r.claimed_by IS NULL AND r.attempts = i.attempt AND r.failures = i.failures
        ELSE r.claimed_by = i.claimed_by AND r.finished_at = i.finished_at END
        AND NOT EXISTS (SELECT FROM settled WHERE settled.id = r.id)
    ), done AS (
      SELECT id, attempt, attempts, lost_at FROM settled UNION ALL SELECT * FROM before
    ), logged AS (
      INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, status_code,
        error, recovery, lookup)
      SELECT i.id, i.scheduled_for, i.attempt, i.claimed_by, i.started_at, i.finished_at,
        CASE WHEN i.outcome = 'accepted' AND done.id IS NULL THEN 'acceptedLate' ELSE i.outcome END,
        i.status_code, i.error::jsonb, i.recovery, i.lookup
      FROM input i LEFT JOIN done ON done.id = i.id AND done.attempt = i.attempt
      WHERE i.outcome <> 'accepted' OR i.attempt > 1 OR done.id IS NULL OR done.attempts > 1 OR done.lost_at IS NOT NULL
      ON CONFLICT (scheduled_for, run_id, attempt) DO UPDATE SET finished_at = excluded.finished_at,
        outcome = excluded.outcome, status_code = excluded.status_code, error = excluded.error
        WHERE attempts.outcome = 'unknown' AND excluded.outcome <> 'unknown'
    ), undone AS MATERIALIZED (
      SELECT i.scheduled_for, i.id FROM input i WHERE NOT EXISTS (SELECT FROM done WHERE done.id = i.id)
    )
    SELECT done.id, done.lost_at IS NOT NULL AS was_lost, ${AFTERMATH}, (SELECT string_agg(r.id::text, ',')
      FROM undone u JOIN runs r ON r.scheduled_for = u.scheduled_for AND r.id = u.id
      WHERE r.reason IN ('replaced', 'deleted')) AS ended_before
    FROM aftermath LEFT JOIN done ON true`,
  );
  const [first] = rows;
  return {
    runs: new Map(rows.flatMap((row) => (row.id === null ? [] : [[row.id, { wasLost: row.was_lost }]]))),
    ended: new Set(first?.ended_before?.split(',')),
    aftermath: aftermathOf(first),
  };
}
