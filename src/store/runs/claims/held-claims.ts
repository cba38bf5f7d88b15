import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../../core/instant.ts';
import type { Claim } from '../../../core/runs/run-record.ts';
import { anyUid, fromMs, ints, milliseconds, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { queryPrepared, rowsOf } from '../../../postgres/sql/rows.ts';
import { BEFORE_BEGINNING, causesOfBeginnings, setBegun } from '../bounds.ts';
import { isReady } from '../statement-parts.ts';
import type { ClaimedRun } from './claimed-run.ts';

/** Its moment tells it from another claim of the same attempt, after a failover that lost the first. */
interface HeldClaim extends Claim {
  claimedAt: Instant;
}

export function claimOf({ id, instanceId, attempt, claimedAt }: ClaimedRun): HeldClaim {
  return { runId: id, instanceId, attempt, claimedAt };
}

/** A run with a limit keeps its place. */
const READY = isReady(
  { dueAt: sql`r.due_at`, limitId: sql`r.limit_id`, admittedAt: sql`r.admitted_at` },
  sql`clock_timestamp()`,
);

/** The name of the NOTIFY about runs that an instance has handed back: a hint, never needed. */
export const RUNS_RETURNED = 'firelock_runs_returned';

/**
 * Hands unsent claims back, where they are still the caller's: any instance may take them at once, and hears so. Rows that other
 * transactions have locked are passed over: `locked` are the ids of those. A first attempt that was never sent has not begun.
 */
export async function returnClaimsIfMine(
  db: Executor,
  claims: readonly HeldClaim[],
): Promise<{ returned: number; locked: ReadonlySet<string> }> {
  const returned = await rowsOf<{ id: string }>(db)(sql`-- returnClaimsIfMine
    WITH free AS MATERIALIZED (${stillClaimed(claims)} ORDER BY r.id FOR UPDATE OF r SKIP LOCKED)
    UPDATE runs r SET claimed_by = NULL, claimed_at = NULL, first_claimed_at = nullif(r.first_claimed_at, r.claimed_at),
      ready = ${READY}, updated_at = clock_timestamp()
    FROM free WHERE r.id = free.id
    RETURNING r.id, pg_notify(${RUNS_RETURNED}, '')`);
  const locked =
    returned.length < claims.length
      ? await rowsOf<{ id: string }>(db)(sql`-- returnClaimsIfMine
    ${stillClaimed(claims)}`)
      : [];
  return { returned: returned.length, locked: new Set(locked.map((row) => row.id)) };
}

/**
 * Writes that the attempts of these claims begin, if the runs are still claimed so; answers the ids of those runs. It is known by now
 * whether an earlier attempt arrived. Rows that other transactions have locked are passed over, since these may change the claims.
 * `bounded`: bounds of some go by this beginning, which is judged here.
 */
export async function startHandoffsIfClaimed(
  db: Executor,
  claims: readonly HeldClaim[],
  { bounded }: { bounded: boolean },
): Promise<ReadonlySet<string>> {
  const now = sql`clock.now`;
  const rows = await queryPrepared<{ id: string }>(db)(sql`-- startHandoffsIfClaimed
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    free AS MATERIALIZED (${stillClaimed(claims, bounded ? BEFORE_BEGINNING : RUN_ID)} ORDER BY r.id FOR UPDATE OF r SKIP LOCKED)
    ${bounded ? sql`, judged AS (${causesOfBeginnings(sql`free b, clock`, now)})` : sql``}
    UPDATE runs r SET handoff_started_at = clock.now, in_doubt_until = NULL, attempt_in_doubt = NULL, lookups = 0,
      updated_at = clock.now${bounded ? sql`, ${setBegun(now)}` : sql``}
    FROM clock, free WHERE r.id = free.id
    RETURNING r.id`);
  return new Set(rows.map((row) => row.id));
}

const RUN_ID = sql`r.id`;

/** Runs `r` that are still claimed so. */
function stillClaimed(claims: readonly HeldClaim[], columns = RUN_ID): SQL {
  return sql`SELECT ${columns} FROM unnest(${uuids(claims.map((claim) => claim.runId))},
      ${uuids(claims.map((claim) => claim.instanceId))}, ${ints(claims.map((claim) => claim.attempt))},
      ${milliseconds(claims.map((claim) => claim.claimedAt))})
      AS c(id, claimed_by, attempt, claimed_ms)
    JOIN runs r ON r.id = c.id AND ${anyUid(sql`c.id`)}
    WHERE CASE WHEN r.status = 'pending' THEN r.claimed_by = c.claimed_by AND r.attempts = c.attempt
      AND r.claimed_at = ${fromMs(sql`c.claimed_ms`)} END`;
}
