import { sql } from 'drizzle-orm';
import type { Run } from '../../core/runs/run.ts';
import { booleans, ints, uuids } from '../../postgres/sql/arrays.ts';
import { anyUid } from '../../postgres/sql/by-key.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { stepTo } from '../runs/step-to.ts';
import type { PulledRun } from './pulled-runs.ts';

/** A claim whose worker went away before the answer. */
interface UnansweredClaim extends Pick<PulledRun, 'isFirst'> {
  run: Pick<Run, 'id' | 'attempts' | 'claimedBy'>;
}

/** Takes back claims whose worker got no answer, as if they had not been made; but the attempt's number is used up. */
export async function takeBackIfStillLeased(
  db: Executor,
  claims: readonly UnansweredClaim[],
): Promise<number> {
  const rows = await rowsOf<{ id: string }>(
    db,
    sql`WITH untold AS MATERIALIZED (
      SELECT r.id, c.is_first
      FROM unnest(${uuids(claims.map(({ run }) => run.id))},
        ${ints(claims.map(({ run }) => run.attempts))}, ${uuids(claims.map(({ run }) => run.claimedBy))},
        ${booleans(claims.map(({ isFirst }) => isFirst))}) AS c(id, attempt, claimed_by, is_first)
      JOIN runs r ON r.id = c.id AND ${anyUid(sql`c.id`)}
      WHERE r.status = 'running' AND r.attempts = c.attempt AND r.claimed_by = c.claimed_by
      ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
    )
    UPDATE runs r SET status = ${sql.raw(stepTo('running', 'pending', 'takeBackIfStillLeased'))},
      claimed_by = NULL, claimed_at = NULL, handoff_started_at = NULL, handed_off_at = NULL, expires_at = NULL, lease_seconds = NULL,
      first_claimed_at = CASE WHEN NOT untold.is_first THEN r.first_claimed_at END,
      lateness_ms = CASE WHEN NOT untold.is_first THEN r.lateness_ms END, updated_at = clock_timestamp()
    FROM untold WHERE r.id = untold.id
    RETURNING r.id`,
  );
  return rows.length;
}
