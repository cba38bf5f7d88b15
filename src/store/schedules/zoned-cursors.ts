import { type SQL, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import {
  type CursorState,
  type ZoneDataSeen,
  LAST_WRITES_SECONDS,
  ZONE_DATA_VERSION,
  zoneDataRank,
} from '../../core/time/cursors.ts';
import type { Executor } from '../../postgres/executor.ts';
import { FIRST_UUID, instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import {
  type InstantText,
  LOCK_LIMIT,
  onlyColumnOf,
  recordsOf,
  rowsOf,
  toInstant,
  toInstantOrNull,
} from '../../postgres/sql/rows.ts';
import { lookAtAlertsOf } from '../alerts/alert-effects.ts';
import { isUnlisted, lives } from '../instances/instances.ts';
import type { TimedSchedule } from './locked-schedule.ts';
import { SCHEDULES_CHANGED } from './write-schedules.ts';

/** A schedule whose fire times depend on zone data, and its planning state: the guard of a move. */
export type ZonedSchedule = CursorState & TimedSchedule;

interface ZonedPage {
  /** The database's clock. */
  now: Instant;
  schedules: ZonedSchedule[];
  /** Where the next page begins; null: there is none. */
  last: string | null;
}

/**
 * Reads the next `limit` schedules by uid. Answers those with a cron in a zone whose cursor lies in the future, or is
 * null because no fire was left. The tick handles schedules that are due or in error.
 */
export async function listZonedSchedules(
  db: Executor,
  { after, limit }: { after: string | null; limit: number },
): Promise<ZonedPage> {
  // A page counts all schedules: if few have a zone, collecting enough of them would read the whole table at once.
  type Row = Omit<ZonedSchedule, 'uid'> & Pick<ZonedPage, 'now' | 'last'> & { uid: string | null };
  const rows = await recordsOf<Row>(db)(sql`-- listZonedSchedules
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    page AS MATERIALIZED (
      SELECT uid, id, version, timing, zoned, enabled, error, after_uid, next_occurrence_at, next_fire_at,
        last_fire_at, updated_at, created_at
      FROM schedules WHERE uid > ${after ?? FIRST_UUID}::uuid ORDER BY uid LIMIT ${limit}
    )
    SELECT clock.now, (SELECT uid FROM page ORDER BY uid DESC LIMIT 1) AS last,
      p.uid, p.id, p.version, p.timing, p.next_occurrence_at, p.last_fire_at, p.updated_at, p.created_at
    FROM clock LEFT JOIN page p ON p.enabled AND p.error IS NULL AND p.after_uid IS NULL
      AND p.zoned
      AND (p.next_occurrence_at > clock.now AND p.next_fire_at > clock.now
        OR p.next_occurrence_at IS NULL AND p.next_fire_at IS NULL)`);
  const [first] = rows;
  if (!first) throw new Error('the statement that pages through schedules answered no row');
  return {
    now: first.now,
    schedules: rows.flatMap(({ uid, ...row }) => (uid === null ? [] : [{ uid, ...row }])),
    last: first.last,
  };
}

export interface CursorMove {
  schedule: ZonedSchedule;
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
}

/**
 * Moves cursors that are as they were read, not due and not being planned, while no instance with newer zone data is alive.
 * If another transaction has locked one of their rows for long, it fails (isLockedByOthers): the schedules that it has locked
 * meanwhile cannot fire.
 * Answers how many it moved. It clears a dead instance's lock, so that what that instance had planned is fenced.
 */
export async function moveCursorsIfUnplanned(
  db: Executor,
  zoneData: string,
  moves: readonly CursorMove[],
): Promise<number> {
  const moved = await onlyColumnOf<string>(db)(sql`-- moveCursorsIfUnplanned
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now, ${LOCK_LIMIT}),
    newer AS MATERIALIZED (SELECT ${newerZoneDataLives(zoneData)} AS lives FROM clock),
    movable AS MATERIALIZED (
      SELECT s.uid, m.next_occurrence_at, m.next_fire_at
      FROM unnest(${uuids(moves.map(({ schedule }) => schedule.uid))}, ${ints(moves.map(({ schedule }) => schedule.version))},
        ${instants(moves.map(({ schedule }) => schedule.nextOccurrenceAt))},
        ${instants(moves.map((move) => move.nextOccurrenceAt))}, ${instants(moves.map((move) => move.nextFireAt))})
        AS m(uid, version, cursor, next_occurrence_at, next_fire_at)
      JOIN schedules s ON s.uid = m.uid CROSS JOIN clock
      WHERE NOT (SELECT lives FROM newer) AND s.enabled AND s.error IS NULL AND s.version = m.version
        AND s.next_occurrence_at IS NOT DISTINCT FROM m.cursor
        AND (s.next_fire_at > clock.now + interval '1 second' OR m.cursor IS NULL AND s.next_fire_at IS NULL)
        AND (s.locked_by IS NULL
          OR ${isUnlisted(sql`s.locked_by`)})
      ORDER BY s.uid FOR NO KEY UPDATE OF s
    )
    UPDATE schedules s SET next_occurrence_at = m.next_occurrence_at, next_fire_at = m.next_fire_at,
      locked_by = NULL, locked_at = NULL
    FROM movable m WHERE s.uid = m.uid RETURNING s.uid`);
  await lookAtAlertsOf(db, moved);
  if (moved.length > 0)
    await db.execute(sql`-- moveCursorsIfUnplanned
    SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
  return moved.length;
}

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
    recorded: first.recorded === null || lookedThroughAt === null ? null : { version: first.recorded, lookedThroughAt },
    others: rows.flatMap(({ version, alive, last_alive_at }) =>
      version === null ? [] : [{ version, alive, lastAliveAt: toInstant(last_alive_at) }],
    ),
  };
}

/**
 * Records that all cursors follow this zone data, as of a look-through that began then. Does nothing if an instance may have planned by
 * other data meanwhile. Answers whether it did.
 */
export async function recordZoneDataIfAlone(db: Executor, own: string, lookedThroughAt: Instant): Promise<boolean> {
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
function newerZoneDataLives(own: string): SQL {
  return sql`EXISTS (
    SELECT FROM instances i
    WHERE i.zone_data ~ ${ZONE_DATA_VERSION.source} AND i.zone_data COLLATE "C" > ${zoneDataRank(own)} AND ${lives}
  )`;
}
