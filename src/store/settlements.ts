import { type SQL, sql } from 'drizzle-orm';
import type { AttemptOutcome, LookedUp } from '../core/attempt-log.ts';
import type { Instant } from '../core/instant.ts';
import type { Settlement } from '../core/settlement.ts';
import { bigints, booleans, doubles, fromMs, instants, ints, milliseconds, texts, uuids } from './arrays.ts';
import { runsByKey } from './by-key.ts';
import type { Claim } from './claims.ts';
import { aftermathIn } from './dependents.ts';
import { markAsOfDatabaseWork } from './errors.ts';
import type { Executor, Transaction } from './executor.ts';
import {
  AFTERMATH,
  type Aftermath,
  type AftermathRow,
  ENDED,
  NO_AFTERMATH,
  aftermathOf,
  followEnds,
  isFollowed,
  together,
  uidsIn,
} from './followers.ts';
import { LOCK_LIMIT } from './lock-limit.ts';
import { frequentRowsOf, idsUnlessAll, isAmong, rowsOf } from './rows.ts';

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
  /** Whether a request was sent under this claim, as far as is known. */
  sent: boolean;
}

/** The runs that a batch settled, by id, with whether each had once been found lost; and what their ends brought about. */
export interface Settled {
  runs: ReadonlyMap<string, { wasLost: boolean }>;
  aftermath: Aftermath;
}

/** What is settled is committed, and is to be followed up; what then went wrong is of the others. */
export interface SettledAlone extends Settled {
  failure: { error: unknown } | null;
}

/**
 * Writes outcomes; answers the runs it settled. The guard is the claim the
 * attempt was made under; only a 2xx settles whatever is still pending, whoever claims it now: it is the truth. Not so where it
 * only says that the work has begun, of a run that was opened again since: that work is over.
 * What it does not settle is for settleInTransaction: it may be fenced, or its end has dependents to release, who may have come
 * while the statement waited for its row, and it would not see them.
 * A plain first-attempt success leaves no row in the log, as its run tells all of it; what recovery wrote there of an
 * attempt it knew nothing of gives way to what is known now. Callers sort by (scheduledFor, id).
 * The guard is a CASE so that the planner cannot take it for a filter: statistics call pending runs rare, and it would
 * begin with all of them instead of with the batch's keys. No run may be in the batch twice.
 * One statement for all that are plain, which nearly all are, and which takes half the time; one for what is left. Either fails where
 * somebody holds one of its rows for long (isLockedByOthers).
 */
export async function settleIfClaimedAndWithoutDependents(
  db: Executor,
  settled: readonly AttemptSettlement[],
): Promise<SettledAlone> {
  const plain = await settlePlainIfClaimed(db, settled.filter(isPlainSuccess));
  const others = settled.filter(({ runId }) => !plain.runs.has(runId));
  if (others.length === 0) return { ...plain, failure: null };
  try {
    const rows = await frequentRowsOf<SettledRow>(db, settle(others, { alone: true }));
    return {
      runs: new Map([...plain.runs, ...runsIn(rows)]),
      aftermath: together([plain.aftermath, aftermathOf(rows[0])]),
      failure: null,
    };
  } catch (error) {
    if (plain.runs.size === 0) throw error;
    markAsOfDatabaseWork(error);
    return { ...plain, failure: { error } };
  }
}

function isPlainSuccess({ settlement, outcome, attempt, recovery, lookup }: AttemptSettlement): boolean {
  const { status, retryAt, doubt, error } = settlement;
  const isFirst = attempt === 1 && !recovery && lookup === null;
  return outcome === 'accepted' && status === 'succeeded' && isFirst && !retryAt && !doubt && !error;
}

/**
 * First attempts that succeeded, where nothing else has happened to the run, no run depends on it and no schedule follows its end:
 * what is left then is its own row. It does nothing that `settle` would not do.
 */
async function settlePlainIfClaimed(db: Executor, plain: readonly AttemptSettlement[]): Promise<Settled> {
  if (plain.length === 0) return { runs: new Map(), aftermath: NO_AFTERMATH };
  const instantsOf = plain.map((row) => row.scheduledFor);
  const [row] = await frequentRowsOf<{ settled: string | null; guarded: string | null }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now, ${LOCK_LIMIT}), settled AS (
      UPDATE runs r SET status = 'succeeded', handoff_started_at = ${fromMs(sql`i.started_ms`)},
        handed_off_at = ${fromMs(sql`i.finished_ms`)}, finished_at = ${fromMs(sql`i.finished_ms`)},
        lateness_ms = coalesce(r.lateness_ms, i.lateness_ms), execution_id = i.execution_id,
        result_status_code = i.status_code, result_body = i.body, updated_at = clock.now
      FROM (
        SELECT *, ${fromMs(sql`scheduled_ms`)} AS scheduled_for FROM unnest(${uuids(plain.map((row) => row.runId))},
          ${milliseconds(instantsOf)}, ${uuids(plain.map((row) => row.instanceId))}, ${texts(plain.map((row) => row.settlement.executionId))},
          ${ints(plain.map((row) => row.settlement.statusCode))}, ${texts(plain.map((row) => row.settlement.body))},
          ${milliseconds(plain.map((row) => row.startedAt))}, ${milliseconds(plain.map((row) => row.finishedAt))},
          ${bigints(plain.map((row) => row.latenessMs))})
          AS u(id, scheduled_ms, claimed_by, execution_id, status_code, body, started_ms, finished_ms, lateness_ms)
      ) AS i, clock
      WHERE ${runsByKey(sql`r`, sql`i`, instantsOf)}
        AND CASE WHEN r.status = 'pending' THEN r.claimed_by = i.claimed_by AND r.attempts = 1 AND r.lost_at IS NULL
          AND r.in_doubt_until IS NULL AND r.doubted_attempt IS NULL AND NOT r.has_dependents
          AND (NOT (SELECT EXISTS (SELECT FROM schedules WHERE after_uid IS NOT NULL)) OR NOT ${isFollowed(sql`r`)}) END
      RETURNING r.id, CASE WHEN r.overlap_guarded THEN r.schedule_uid END AS guarded_uid
    )
    SELECT ${idsUnlessAll(sql`settled`, plain.length)} AS settled,
      (SELECT string_agg(DISTINCT guarded_uid::text, ',') FROM settled WHERE guarded_uid IS NOT NULL) AS guarded`,
  );
  if (!row) throw new Error('the settling statement answered no row');
  const isSettled = isAmong(row.settled);
  return {
    runs: new Map(plain.flatMap(({ runId }) => (isSettled(runId) ? [[runId, { wasLost: false }]] : []))),
    aftermath: { ...NO_AFTERMATH, toJudge: uidsIn(row.guarded) },
  };
}

/** What became of a batch, and the runs of it that somebody else works on right now. */
export interface SettledInTransaction extends Settled {
  /** Those of the others that firelock itself, or a word about them, had ended meanwhile. */
  ended: ReadonlySet<string>;
  passedOver: ReadonlySet<string>;
}

/**
 * The same for runs that others depend on, and for a batch whose earlier statement may have been committed unseen: what that
 * settled counts as settled. It may be under way still, so its rows are locked first: a statement's own wait for them would end
 * with its old snapshot. Rows that others hold are passed over, or waited for.
 */
export async function settleInTransactionIfClaimed(
  tx: Transaction,
  outcomes: readonly AttemptSettlement[],
  { wait = false }: { wait?: boolean } = {},
): Promise<SettledInTransaction> {
  const keys = sql`unnest(${instants(outcomes.map((row) => row.scheduledFor))},
    ${uuids(outcomes.map((row) => row.runId))}) AS i(scheduled_for, id)`;
  const times = outcomes.map((row) => row.scheduledFor);
  const found = sql`FROM ${keys} JOIN runs r ON ${runsByKey(sql`r`, sql`i`, times)}`;
  const locked = await rowsOf<{ id: string }>(
    tx,
    sql`SELECT r.id ${found} ORDER BY r.scheduled_for, r.id FOR UPDATE OF r ${wait ? sql`` : sql`SKIP LOCKED`}`,
  );
  const free = new Set(locked.map((row) => row.id));
  const held =
    free.size === outcomes.length ? [] : await rowsOf<{ id: string }>(tx, sql`SELECT r.id ${found}`);
  const rows = await rowsOf<SettledRow>(
    tx,
    settle(
      outcomes.filter((row) => free.has(row.runId)),
      { alone: false },
    ),
  );
  return {
    runs: runsIn(rows),
    aftermath: await aftermathIn(tx, rows[0]),
    ended: new Set(rows[0]?.ended_before?.split(',')),
    passedOver: new Set(held.map((row) => row.id).filter((id) => !free.has(id))),
  };
}

interface SettledRow extends AftermathRow {
  id: string | null;
  was_lost: boolean;
  ended_before: string | null;
}

function runsIn(rows: readonly SettledRow[]): Map<string, { wasLost: boolean }> {
  return new Map(rows.flatMap(({ id, was_lost }) => (id === null ? [] : [[id, { wasLost: was_lost }]])));
}

/** `alone`: the statement is all there is; what it does not settle is tried again. */
function settle(settled: readonly AttemptSettlement[], { alone }: { alone: boolean }): SQL {
  const instantsOf = settled.map((row) => row.scheduledFor);
  return sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now${alone ? sql`, ${LOCK_LIMIT}` : sql``}),
    input AS MATERIALIZED (
      SELECT * FROM unnest(${uuids(settled.map((row) => row.runId))}, ${instants(instantsOf)},
        ${uuids(settled.map((row) => row.instanceId))}, ${ints(settled.map((row) => row.attempt))},
        ${texts(settled.map((row) => row.settlement.status))}, ${ints(settled.map((row) => row.settlement.failures))},
        ${doubles(settled.map((row) => row.settlement.leaseSeconds))},
        ${instants(settled.map((row) => row.settlement.retryAt))},
        ${instants(settled.map((row) => row.settlement.doubt?.until ?? null))},
        ${ints(settled.map((row) => row.settlement.doubt?.lookups ?? 0))},
        ${texts(settled.map((row) => row.settlement.executionId))},
        ${ints(settled.map((row) => row.settlement.statusCode))}, ${texts(settled.map((row) => row.settlement.body))},
        ${texts(settled.map((row) => (row.settlement.error ? JSON.stringify(row.settlement.error) : null)))},
        ${texts(settled.map((row) => row.outcome))}, ${instants(settled.map((row) => row.startedAt))},
        ${instants(settled.map((row) => row.finishedAt))}, ${bigints(settled.map((row) => row.latenessMs))},
        ${booleans(settled.map((row) => row.recovery))}, ${texts(settled.map((row) => row.lookup))},
        ${booleans(settled.map((row) => row.sent))})
        AS i(id, scheduled_for, claimed_by, attempt, status, failures, lease_seconds, retry_at, in_doubt_until, lookups, execution_id,
          status_code, body, error, outcome, started_at, finished_at, lateness_ms, recovery, lookup, sent)
    ), settled AS (
      UPDATE runs r SET status = i.status, failures = greatest(r.failures, i.failures), due_at = coalesce(i.retry_at, r.due_at),
        claimed_by = CASE WHEN i.status = 'pending' THEN NULL ELSE i.claimed_by END,
        claimed_at = CASE WHEN i.status = 'pending' THEN NULL ELSE r.claimed_at END,
        handoff_started_at = CASE WHEN i.status <> 'pending' AND i.lookup IS DISTINCT FROM 'arrived' THEN i.started_at END,
        handed_off_at = CASE WHEN i.outcome = 'accepted' THEN i.finished_at WHEN i.in_doubt_until IS NOT NULL THEN r.handed_off_at END,
        finished_at = CASE WHEN i.status NOT IN ('pending', 'running') THEN i.finished_at END,
        expires_at = clock.now + make_interval(secs => i.lease_seconds), lease_seconds = i.lease_seconds,
        in_doubt_until = i.in_doubt_until, lookups = i.lookups,
        doubted_attempt = CASE WHEN i.status = 'running' AND i.attempt < r.attempts THEN i.attempt
          WHEN i.in_doubt_until IS NOT NULL OR i.lookup = 'arrived'
          THEN CASE WHEN i.sent THEN i.attempt ELSE coalesce(r.doubted_attempt, i.attempt) END END,
        lateness_ms = coalesce(r.lateness_ms, i.lateness_ms), execution_id = i.execution_id,
        result_status_code = i.status_code, result_body = i.body, error = i.error::jsonb, updated_at = clock.now
      FROM input i, clock
      WHERE ${runsByKey(sql`r`, sql`i`, instantsOf)}
        AND CASE WHEN r.status = 'pending'
          THEN (i.outcome = 'accepted' OR r.claimed_by = i.claimed_by AND r.attempts = i.attempt)
            AND (i.status <> 'running' OR i.attempt > coalesce(r.retried_after, 0))
            AND (NOT ${alone} OR NOT r.has_dependents OR i.status IN ('pending', 'running')) END
      RETURNING ${ENDED}, i.attempt, r.attempts, r.lost_at
    ), ${followEnds(sql`settled`)}, before AS (
      SELECT r.id, i.attempt, r.attempts, r.lost_at FROM input i
      JOIN runs r ON ${runsByKey(sql`r`, sql`i`, instantsOf)}
      WHERE NOT ${alone} AND r.status = i.status AND CASE r.status
        WHEN 'pending' THEN r.claimed_by IS NULL AND r.attempts = i.attempt AND r.failures = i.failures
        WHEN 'running' THEN r.claimed_by = i.claimed_by AND r.handed_off_at = i.finished_at
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
      WHERE (NOT ${alone} OR done.id IS NOT NULL)
        AND (i.outcome <> 'accepted' OR i.attempt > 1 OR done.id IS NULL OR done.attempts > 1 OR done.lost_at IS NOT NULL)
      ON CONFLICT (scheduled_for, run_id, attempt) DO UPDATE SET finished_at = excluded.finished_at,
        outcome = excluded.outcome, status_code = excluded.status_code, error = excluded.error
        WHERE attempts.outcome = 'unknown' AND excluded.outcome <> 'unknown'
    ), undone AS MATERIALIZED (
      SELECT i.scheduled_for, i.id, i.claimed_by, i.attempt FROM input i WHERE NOT EXISTS (SELECT FROM done WHERE done.id = i.id)
    )
    SELECT done.id, done.lost_at IS NOT NULL AS was_lost, ${AFTERMATH}, (SELECT string_agg(r.id::text, ',')
      FROM undone u JOIN runs r ON ${runsByKey(sql`r`, sql`u`, instantsOf)}
      WHERE r.reason IN ('replaced', 'deleted', 'request')
        OR r.status IN ('succeeded', 'failed') AND r.claimed_by = u.claimed_by AND r.attempts = u.attempt) AS ended_before
    FROM aftermath LEFT JOIN done ON true`;
}
