import { anyUid, uuids } from '../../../postgres/sql/arrays.ts';
import { sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { queryPrepared } from '../../../postgres/sql/rows.ts';
import { MAY_BEGIN } from '../begin-by.ts';
import { type ClaimedRow, type ClaimedRun, claimedRun } from './claimed-run.ts';
import { CLAIMED_COLUMNS, type ClaimRequest, MAX_ATTEMPTS, mayClaim, setClaimed } from './claims.ts';

/** A run that is due and may be sent. No instance has claimed it yet. */
export interface ReadyRun {
  id: string;
  lane: string;
}

/**
 * Claims those of these runs that are ready and that no instance has claimed. It skips rows that other transactions have locked. As with
 * `claimReadyRuns`, an instance that was declared dead claims nothing, and none claims what maintenance holds.
 *
 * The condition is a CASE, which hides it from the planner: the statistics may know of no ready run, and then it would read all that are
 * ready to find these.
 */
export async function claimIfReady(
  db: Executor,
  ids: readonly string[],
  request: Pick<ClaimRequest, 'instanceId' | 'targetTypes'>,
): Promise<ClaimedRun[]> {
  const { instanceId } = request;
  const rows = await queryPrepared<ClaimedRow>(db)(sql`-- claimIfReady
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), chosen AS MATERIALIZED (
      SELECT id FROM runs WHERE id = ANY (${uuids(ids)}) AND ${mayClaim(sql`lane`, request)}
        AND CASE WHEN status = 'pending' AND claimed_by IS NULL AND ready THEN attempts < ${MAX_ATTEMPTS} AND ${MAY_BEGIN} END
      ORDER BY id FOR UPDATE SKIP LOCKED
    )
    UPDATE runs r SET ${setClaimed(instanceId)} FROM chosen, clock WHERE r.id = chosen.id AND ${anyUid(sql`chosen.id`)}
    RETURNING ${CLAIMED_COLUMNS}`);
  return rows.map((row) => claimedRun(row, instanceId));
}
