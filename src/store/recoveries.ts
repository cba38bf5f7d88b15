import { type SQL, sql } from 'drizzle-orm';
import type { RunTakenOver } from '../core/events.ts';
import type { Instant } from '../core/instant.ts';
import { instants, ints, uuids } from './arrays.ts';
import { aftermathIn } from './dependents.ts';
import type { Executor, Transaction } from './executor.ts';
import { AFTERMATH, type Aftermath, type AftermathRow, ENDED, followEnds } from './followers.ts';
import { runsByKey } from './by-key.ts';
import { sinceDayOf } from './open-runs.ts';
import { type InstantText, rowsOf, scheduleIdOf, toInstant, toInstantOrNull } from './rows.ts';

/** A claim that its run has in vain: by an instance that is gone, that does not know of it, or for too long. */
export interface LostClaim {
  runId: string;
  scheduledFor: Instant;
  instanceId: string;
  attempt: number;
  /** As it was when the claim was found: an attempt that began since is not lost. */
  handoffStartedAt: Instant | null;
}

export interface RecoveryPolicy {
  /** How often a run is driven on before it is given up. */
  maxRecoveries: number;
  /** Longer than this after it was due, or due again, it is given up. */
  maxRecoveryAgeSeconds: number;
  /** Added to an attempt's own limit: how long a frozen instance may still act on what it decided before it froze. */
  lockTtlSeconds: number;
}

interface ClaimRow {
  id: string;
  scheduled_for: InstantText;
  claimed_by: string;
  attempts: number;
  handoff_started_at: InstantText | null;
}

/** Claims of instances that are not listed as living, oldest due first; found by their rows, whatever was heard of a death. */
export function findOrphans(db: Executor, openSince: Instant, limit: number): Promise<LostClaim[]> {
  return lostClaims(
    db,
    sql`SELECT id, scheduled_for, claimed_by, attempts, handoff_started_at FROM runs r
    WHERE status = 'pending' AND claimed_by IS NOT NULL AND ${sinceDayOf(sql`scheduled_for`, openSince)}
      AND NOT EXISTS (SELECT FROM instances i WHERE i.id = r.claimed_by AND i.died_at IS NULL)
    ORDER BY due_at LIMIT ${limit}`,
  );
}

/** Every claim of this instance, for it to compare with what it knows. */
export function findClaimsOf(db: Executor, openSince: Instant, instanceId: string): Promise<LostClaim[]> {
  return lostClaims(
    db,
    sql`SELECT id, scheduled_for, claimed_by, attempts, handoff_started_at FROM runs
    WHERE status = 'pending' AND claimed_by IS NOT NULL AND claimed_by = ${instanceId}
      AND ${sinceDayOf(sql`scheduled_for`, openSince)}`,
  );
}

/** Claims older than their attempt may take by `lostAfterSeconds`, whatever is known of their instance. */
export function findExpiredClaims(
  db: Executor,
  openSince: Instant,
  lostAfterSeconds: number,
  limit: number,
): Promise<LostClaim[]> {
  return lostClaims(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT r.id, r.scheduled_for, r.claimed_by, r.attempts, r.handoff_started_at
    FROM clock, runs r LEFT JOIN schedule_versions v ON v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version
    WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
      AND coalesce(r.handoff_started_at, r.claimed_at) < clock.now - make_interval(secs => ${lostAfterSeconds})
      AND coalesce(r.handoff_started_at, r.claimed_at)
        < clock.now - make_interval(secs => ${lostAfterSeconds} + ${timeoutSeconds(sql`v.definition`)})
    ORDER BY r.due_at LIMIT ${limit}`,
  );
}

/**
 * Takes runs away from claims that are lost, where they still are as found, and decides under their row locks what becomes of them
 * (RunTakenOver). Each is counted as lost, and the attempt that nobody will tell of is logged. Rows that somebody else works on are
 * passed over: the next pass finds them again; or waited for.
 */
export async function takeOverIfStillClaimed(
  tx: Transaction,
  claims: readonly LostClaim[],
  policy: RecoveryPolicy,
  { wait = false }: { wait?: boolean } = {},
): Promise<{ runs: RunTakenOver[]; aftermath: Aftermath }> {
  const rows = await rowsOf<
    {
      id: string | null;
      schedule_id: string;
      claimed_by: string;
      verdict: RunTakenOver['verdict'];
    } & AftermathRow
  >(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    lost AS MATERIALIZED (${lockedAsFound(claims)} ${wait ? sql`` : sql`SKIP LOCKED`}),
    judged AS MATERIALIZED (${judged(policy)}),
    taken AS (
      UPDATE runs r SET
        status = CASE j.verdict WHEN 'again' THEN 'pending' WHEN 'unknown' THEN 'unknown' ELSE 'abandoned' END,
        reason = CASE WHEN j.verdict NOT IN ('again', 'unknown') THEN j.verdict END,
        finished_at = CASE WHEN j.verdict <> 'again' THEN clock.now END,
        error = CASE WHEN j.verdict = 'unknown' THEN j.error ELSE r.error END,
        lost_at = coalesce(r.lost_at, clock.now), recovered_at = clock.now,
        recoveries = r.recoveries + (j.verdict = 'again')::int,
        claimed_by = CASE WHEN j.verdict <> 'again' THEN r.claimed_by END,
        claimed_at = CASE WHEN j.verdict <> 'again' THEN r.claimed_at END,
        handoff_started_at = CASE WHEN j.verdict <> 'again' THEN r.handoff_started_at END,
        in_doubt_until = CASE WHEN j.verdict = 'again' THEN j.in_doubt_until END,
        doubted_attempt = CASE WHEN j.verdict = 'again' AND j.in_doubt_until IS NOT NULL THEN CASE
          WHEN j.handoff_started_at IS NULL AND j.was_in_doubt_until IS NOT NULL
          THEN coalesce(r.doubted_attempt, r.attempts) ELSE r.attempts END END,
        lookups = CASE WHEN j.at_most_once AND j.handoff_started_at IS NULL THEN r.lookups ELSE 0 END,
        lateness_ms = CASE WHEN j.verdict = 'unknown' THEN coalesce(r.lateness_ms,
          (extract(epoch FROM r.handoff_started_at - r.due_at) * 1000)::bigint) ELSE r.lateness_ms END,
        due_at = CASE WHEN j.verdict = 'again' THEN greatest(r.due_at, j.believed_from) ELSE r.due_at END,
        updated_at = clock.now
      FROM judged j, clock WHERE ${runsByKey(sql`r`, sql`j`, timesOf(claims))}
      RETURNING ${ENDED}
    ), ${followEnds(sql`taken`)}, logged AS (
      INSERT INTO attempts (run_id, scheduled_for, attempt, instance_id, started_at, finished_at, outcome, error, recovery)
      SELECT id, scheduled_for, attempts, claimed_by, coalesce(handoff_started_at, claimed_at, clock.now), clock.now,
        CASE WHEN at_most_once AND handoff_started_at IS NULL THEN 'transient' ELSE 'unknown' END, error, recoveries > 0
      FROM judged, clock
      ON CONFLICT DO NOTHING
    )
    SELECT j.id, j.schedule_id, j.claimed_by, j.verdict, ${AFTERMATH} FROM aftermath LEFT JOIN judged j ON true`,
  );
  const [first] = rows;
  return {
    runs: rows.flatMap(({ id, schedule_id, claimed_by, verdict }) =>
      id === null
        ? []
        : [{ runId: id, scheduleId: scheduleIdOf(schedule_id), instanceId: claimed_by, verdict }],
    ),
    aftermath: await aftermathIn(tx, first),
  };
}

/** All that is judged comes from the locked rows: read again beside them, it would be as old as the statement's snapshot. */
function lockedAsFound(claims: readonly LostClaim[]): SQL {
  return sql`SELECT r.scheduled_for, r.id, r.schedule_uid, r.schedule_version, r.schedule_id, r.trigger, r.claimed_by,
      r.claimed_at, r.attempts, r.recoveries, r.handoff_started_at, r.in_doubt_until AS was_in_doubt_until,
      greatest(r.created_at, r.due_at) AS due_since
    FROM unnest(${uuids(claims.map((claim) => claim.runId))}, ${instants(claims.map((claim) => claim.scheduledFor))},
      ${uuids(claims.map((claim) => claim.instanceId))}, ${ints(claims.map((claim) => claim.attempt))},
      ${instants(claims.map((claim) => claim.handoffStartedAt))})
      AS c(id, scheduled_for, claimed_by, attempt, handoff_started_at)
    JOIN runs r ON ${runsByKey(sql`r`, sql`c`, timesOf(claims))}
    WHERE CASE WHEN r.status = 'pending' THEN r.claimed_by = c.claimed_by AND r.attempts = c.attempt
      AND r.handoff_started_at IS NOT DISTINCT FROM c.handoff_started_at END
    ORDER BY r.scheduled_for, r.id FOR UPDATE OF r`;
}

function timesOf(claims: readonly LostClaim[]): Instant[] {
  return claims.map((claim) => claim.scheduledFor);
}

function judged(policy: RecoveryPolicy): SQL {
  const { maxRecoveries, maxRecoveryAgeSeconds, lockTtlSeconds } = policy;
  // Whatever stands in a definition, no cast here can fail: one bad row must not hold up the batch.
  return sql`SELECT lost.*, d.at_most_once, d.error,
      CASE WHEN d.at_most_once AND d.may_have_arrived AND (NOT d.has_lookup OR d.given_up IS NOT NULL) THEN 'unknown'
        ELSE coalesce(d.given_up, 'again') END AS verdict,
      CASE WHEN d.has_lookup THEN coalesce(d.believed_from, lost.was_in_doubt_until,
        CASE WHEN NOT d.at_most_once THEN clock.now END) END AS in_doubt_until,
      d.believed_from
    FROM clock, lost
    LEFT JOIN schedules s ON s.uid = lost.schedule_uid
    LEFT JOIN schedule_versions v ON v.schedule_uid = lost.schedule_uid AND v.version = lost.schedule_version,
    LATERAL (SELECT coalesce(v.definition->>'delivery' = 'atMostOnce', false) AS at_most_once,
      coalesce(jsonb_typeof(v.definition->'target'->'lookup') = 'object', false) AS has_lookup) AS o,
    LATERAL (SELECT o.*, lost.handoff_started_at IS NOT NULL OR lost.was_in_doubt_until IS NOT NULL AS may_have_arrived,
      CASE WHEN o.at_most_once AND o.has_lookup THEN lost.handoff_started_at
        + make_interval(secs => ${timeoutSeconds(sql`v.definition`)} + ${lockTtlSeconds}) END AS believed_from,
      CASE WHEN s.uid IS NULL AND lost.trigger <> 'api' THEN 'deleted'
        WHEN NOT s.enabled AND lost.trigger IN ('schedule', 'catchUp') THEN 'disabled'
        WHEN lost.recoveries >= ${maxRecoveries} THEN 'recoveries'
        WHEN lost.due_since < clock.now - make_interval(secs => ${maxRecoveryAgeSeconds}) THEN 'age' END AS given_up,
      jsonb_build_object('kind', 'network', 'message', 'instance ' || lost.claimed_by || ' was lost with this attempt'
        || CASE WHEN o.at_most_once AND lost.handoff_started_at IS NULL THEN ' unsent' ELSE '; it may have been sent' END)
        AS error) AS d`;
}

/** Of a stored definition, within what the API allows; the longest where it says none. */
function timeoutSeconds(definition: SQL): SQL {
  return sql`(CASE WHEN jsonb_typeof(${definition}->'timeoutSeconds') = 'number'
    THEN least(3600, greatest(1, (${definition}->>'timeoutSeconds')::numeric)) ELSE 3600 END)::float8`;
}

async function lostClaims(db: Executor, statement: SQL): Promise<LostClaim[]> {
  const rows = await rowsOf<ClaimRow>(db, statement);
  return rows.map((row) => ({
    runId: row.id,
    scheduledFor: toInstant(row.scheduled_for),
    instanceId: row.claimed_by,
    attempt: row.attempts,
    handoffStartedAt: toInstantOrNull(row.handoff_started_at),
  }));
}
