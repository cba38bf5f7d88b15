import { sql } from 'drizzle-orm';
import { instants, ints, uuids } from './arrays.ts';
import type { Claim } from './claims.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';

/**
 * Writes that the attempts of these claims begin, where the claims still hold; answers the ids of those runs. An earlier
 * attempt that was in doubt is settled by now. Callers sort by (scheduledFor, id).
 */
export async function startHandoffsIfClaimed(
  db: Executor,
  claims: readonly Claim[],
): Promise<ReadonlySet<string>> {
  const rows = await rowsOf<{ id: string }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    UPDATE runs r SET handoff_started_at = clock.now, in_doubt_until = NULL, lookups = 0, updated_at = clock.now
    FROM clock, unnest(${uuids(claims.map((claim) => claim.runId))},
      ${instants(claims.map((claim) => claim.scheduledFor))}, ${uuids(claims.map((claim) => claim.instanceId))},
      ${ints(claims.map((claim) => claim.attempt))}) AS c(id, scheduled_for, claimed_by, attempt)
    WHERE r.scheduled_for = c.scheduled_for AND r.id = c.id
      AND CASE WHEN r.status = 'pending' THEN r.claimed_by = c.claimed_by AND r.attempts = c.attempt END
    RETURNING r.id`,
  );
  return new Set(rows.map((row) => row.id));
}
