import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';

interface SetAside {
  uid: string;
  version: number;
  lockedAt: Instant;
  error: string;
  failures: number;
  retryAt: Instant;
}

/** A schedule that cannot be planned keeps its cursor, says why, and is looked at again later. */
export async function setAsideIfLocked(
  db: Executor,
  instanceId: string,
  rows: readonly SetAside[],
): Promise<void> {
  await db.execute(
    sql`UPDATE schedules s SET error = a.error, plan_failures = a.failures, next_fire_at = a.retry_at,
      locked_by = NULL, locked_at = NULL
    FROM unnest(${uuids(rows.map((row) => row.uid))}, ${ints(rows.map((row) => row.version))},
      ${instants(rows.map((row) => row.lockedAt))}, ${texts(rows.map((row) => row.error))},
      ${ints(rows.map((row) => row.failures))}, ${instants(rows.map((row) => row.retryAt))})
      AS a(uid, version, locked_at, error, failures, retry_at)
    WHERE s.uid = a.uid AND s.locked_by = ${instanceId} AND s.locked_at = a.locked_at AND s.version = a.version`,
  );
}
