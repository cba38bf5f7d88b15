import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import {
  LAST_WRITES_SECONDS,
  ZONE_DATA_VERSION,
  type ZoneDataSeen,
  zoneDataRank,
} from '../../core/time/zone-data-verdict.ts';
import type { Executor } from '../../postgres/executor.ts';
import { lives } from '../instances/instances.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** Until when an instance `i` may have planned something: for a living instance, this is later than now. */
const lastAliveAt = sql`coalesce(i.died_at, i.heartbeat_at + make_interval(secs => i.ttl_seconds))`;

export async function readZoneData(db: Executor, own: string): Promise<ZoneDataSeen> {
  const rows = await rowsOf<{
    now: InstantText;
    recorded: string | null;
    looked_through_at: InstantText | null;
    version: string | null;
    alive: boolean;
    last_alive_at: InstantText;
  }>(db)(sql`-- readZoneData
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    others AS (
      SELECT i.zone_data AS version, bool_or(${lives}) AS alive, max(${lastAliveAt}) AS last_alive_at
      FROM instances i, clock WHERE i.zone_data <> ${own} GROUP BY i.zone_data
    )
    SELECT clock.now, z.version AS recorded, z.looked_through_at, others.*
    FROM clock LEFT JOIN zone_data z ON true LEFT JOIN others ON true`);
  const [first] = rows;
  if (!first) throw new Error('the statement that reads the zone data answered no row');
  const lookedThroughAt = toInstantOrNull(first.looked_through_at);
  return {
    now: toInstant(first.now),
    recorded:
      first.recorded === null || lookedThroughAt === null
        ? null
        : { version: first.recorded, lookedThroughAt },
    others: rows.flatMap(({ version, alive, last_alive_at }) =>
      version === null ? [] : [{ version, alive, lastAliveAt: toInstant(last_alive_at) }],
    ),
  };
}

/**
 * Records that all cursors follow this zone data, as of a look-through that began then. Does nothing if an instance may have planned by
 * other data meanwhile. Answers whether it did.
 */
export async function recordZoneDataIfAlone(
  db: Executor,
  own: string,
  lookedThroughAt: Instant,
): Promise<boolean> {
  const began = sql`${isoInstant(lookedThroughAt)}::timestamptz`;
  const rows = await rowsOf(db)(sql`-- recordZoneDataIfAlone
    INSERT INTO zone_data (version, looked_through_at) SELECT ${own}, ${began}
    WHERE NOT EXISTS (
      SELECT FROM instances i WHERE i.zone_data <> ${own}
        AND ${lastAliveAt} + make_interval(secs => ${LAST_WRITES_SECONDS}) > ${began}
    )
    ON CONFLICT (one) DO UPDATE SET version = excluded.version, looked_through_at = excluded.looked_through_at
    RETURNING version`);
  return rows.length > 0;
}

/** Whether an instance with newer zone data lives; the clock is a row `clock` with the column `now`. */
export function newerZoneDataLives(own: string): SQL {
  return sql`EXISTS (
    SELECT FROM instances i
    WHERE i.zone_data ~ ${ZONE_DATA_VERSION.source} AND i.zone_data COLLATE "C" > ${zoneDataRank(own)} AND ${lives}
  )`;
}
