import { type SQL, sql } from 'drizzle-orm';
import type { RunTakenOver } from '../../../core/events.ts';
import type { Instant } from '../../../core/instant.ts';
import { judgeLostClaim, type RecoveryPolicy, takeOverRun } from '../../../core/runs/lost-claim.ts';
import type { Claim, RunRecord } from '../../../core/runs/run-record.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { databaseNow, recordsOf, scheduleIdOf } from '../../../postgres/sql/rows.ts';
import { isUnlisted } from '../../instances/instances.ts';
import { type MeetingLocks, type RunChange, lockOpenRuns, saveLockedRuns } from '../lock-and-save.ts';
import { loadRunFacts } from './run-facts.ts';

/** A lost claim: its instance is dead, does not know it, or has had it for too long. */
export interface LostClaim extends Claim {
  /** As it was when the claim was found: an attempt that began since is not lost. */
  handoffStartedAt: Instant | null;
}

/** A `LostClaim` of the run `r`. */
const LOST_CLAIM = sql`r.id AS run_id, r.claimed_by AS instance_id, r.attempts AS attempt, r.handoff_started_at`;

/** At most so many, and none of these runs. */
interface LookForClaims {
  limit: number;
  besides: readonly string[];
}

/** Claims of instances that are not listed as living, oldest due first; found by their rows, whatever was heard of a death. */
export function findOrphans(db: Executor, { limit, besides }: LookForClaims): Promise<LostClaim[]> {
  return recordsOf<LostClaim>(db)(sql`-- findOrphans
    SELECT ${LOST_CLAIM} FROM runs r
    WHERE status = 'pending' AND claimed_by IS NOT NULL
      AND ${isUnlisted(sql`r.claimed_by`)} AND id <> ALL (${uuids(besides)})
    ORDER BY due_at LIMIT ${limit}`);
}

/** Every claim of this instance, for it to compare with what it knows. */
export function findClaimsOf(db: Executor, instanceId: string): Promise<LostClaim[]> {
  return recordsOf<LostClaim>(db)(sql`-- findClaimsOf
    SELECT ${LOST_CLAIM} FROM runs r
    WHERE status = 'pending' AND claimed_by IS NOT NULL AND claimed_by = ${instanceId}`);
}

/** Claims older than their attempt may take by `lostAfterSeconds`, whatever is known of their instance. */
export function findExpiredClaims(
  db: Executor,
  lostAfterSeconds: number,
  { limit, besides }: LookForClaims,
): Promise<LostClaim[]> {
  return recordsOf<LostClaim>(db)(sql`-- findExpiredClaims
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ${LOST_CLAIM}
    FROM clock, runs r LEFT JOIN schedule_versions v ON v.schedule_uid = r.schedule_uid AND v.version = r.schedule_version
    WHERE r.status = 'pending' AND r.claimed_by IS NOT NULL
      AND coalesce(r.handoff_started_at, r.claimed_at) < clock.now - make_interval(secs => ${lostAfterSeconds})
      AND coalesce(r.handoff_started_at, r.claimed_at)
        < clock.now - make_interval(secs => ${lostAfterSeconds} + ${timeoutSeconds(sql`v.definition`)})
      AND r.id <> ALL (${uuids(besides)})
    ORDER BY r.due_at LIMIT ${limit}`);
}

/**
 * Takes over runs whose lost claim is still as it was found, and decides under their row locks what becomes of them
 * (core/runs/lost-claim.ts). Each is counted as lost, and the attempt whose outcome will never come is logged.
 */
export async function takeOverIfStillClaimed(
  tx: Transaction,
  claims: readonly LostClaim[],
  policy: RecoveryPolicy,
  meeting: MeetingLocks,
): Promise<{ runs: RunTakenOver[]; effects: number }> {
  const found = new Map(claims.map((claim) => [claim.runId, claim]));
  const locked = await lockOpenRuns(tx, [...found.keys()], meeting);
  const lost = locked.filter((run) => isAsFound(run, found.get(run.id)));
  const facts = await loadRunFacts(tx, lost);
  const now = await databaseNow(tx);
  const runs: RunTakenOver[] = [];
  const changes = lost.map((from): RunChange => {
    const known = facts.of(from);
    const verdict = judgeLostClaim(from, known, policy, now);
    const { id: runId, claimedBy, notifierId } = from;
    const scheduleId = scheduleIdOf(from.scheduleId);
    runs.push({ runId, scheduleId, notifierId, instanceId: claimedBy ?? '', verdict });
    return { from, to: takeOverRun(from, verdict, known, policy, now) };
  });
  return { runs, effects: await saveLockedRuns(tx, changes) };
}

function isAsFound(run: RunRecord, claim: LostClaim | undefined): boolean {
  return (
    claim !== undefined &&
    run.status === 'pending' &&
    run.claimedBy === claim.instanceId &&
    run.attempts === claim.attempt &&
    run.handoffStartedAt === claim.handoffStartedAt
  );
}

/** Of a stored definition, within what the API allows; the longest where it says none. No cast fails, whatever text is stored. */
function timeoutSeconds(definition: SQL): SQL {
  return sql`(CASE WHEN jsonb_typeof(${definition}->'timeoutSeconds') = 'number'
    THEN least(3600, greatest(1, (${definition}->>'timeoutSeconds')::numeric)) ELSE 3600 END)::float8`;
}
