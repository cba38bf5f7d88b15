import { sql } from 'drizzle-orm';
import { type Claim, LOCKING_FREE, stillClaimed } from './claims.ts';
import type { Executor } from './executor.ts';
import { runsByKey } from './by-key.ts';
import { frequentRowsOf } from './rows.ts';

/**
 * Writes that the attempts of these claims begin, where the claims still hold; answers the ids of those runs. An earlier
 * attempt that was in doubt is settled by now. Rows that others work on are passed over: something happens to their claims.
 */
export async function startHandoffsIfClaimed(
  db: Executor,
  claims: readonly Claim[],
): Promise<ReadonlySet<string>> {
  const times = claims.map((claim) => claim.scheduledFor);
  const rows = await frequentRowsOf<{ id: string }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    held AS MATERIALIZED (${stillClaimed(claims)} ${LOCKING_FREE})
    UPDATE runs r SET handoff_started_at = clock.now, in_doubt_until = NULL, doubted_attempt = NULL, lookups = 0,
      updated_at = clock.now
    FROM clock, held WHERE ${runsByKey(sql`r`, sql`held`, times)}
    RETURNING r.id`,
  );
  return new Set(rows.map((row) => row.id));
}
