import { sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { queryPrepared } from '../../postgres/sql/rows.ts';
import { isPull } from '../queues/queue-lanes.ts';
import type { VersionKey } from './load-handoffs.ts';

/**
 * The versions of enabled schedules whose runs are sent and that are due within so many ms, the first due ones first; none at all where
 * more of them are than asked for.
 */
export async function versionsDueWithin(
  db: Executor,
  { ms, atMost }: { ms: number; atMost: number },
): Promise<VersionKey[]> {
  const rows = await queryPrepared<{ uid: string; version: number }>(
    db,
    sql`WITH due AS MATERIALIZED (
      SELECT uid, version, next_fire_at FROM schedules
      WHERE enabled AND next_fire_at > (SELECT clock_timestamp())
        AND next_fire_at <= (SELECT clock_timestamp() + make_interval(secs => ${ms / 1000}))
        AND NOT ${isPull(sql`lane`)}
      ORDER BY next_fire_at LIMIT ${atMost + 1}
    )
    SELECT uid, version FROM due WHERE (SELECT count(*) FROM due) <= ${atMost} ORDER BY next_fire_at`,
  );
  return rows.map(({ uid, version }) => ({ scheduleUid: uid, scheduleVersion: version }));
}
