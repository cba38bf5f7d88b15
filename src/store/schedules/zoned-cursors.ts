import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { CursorState } from '../../core/time/zone-data-verdict.ts';
import { FIRST_UUID, instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import { lookAtAlertsOf } from '../alerts/alert-effects.ts';
import type { Executor } from '../../postgres/executor.ts';
import { LOCK_LIMIT } from '../../postgres/sql/lock-limit.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';
import { SCHEDULES_CHANGED } from './write-schedules.ts';
import { newerZoneDataLives } from './zone-data.ts';
import { isUnlisted } from '../instances/instances.ts';
import type { TimedSchedule } from './locked-schedule.ts';

/** A schedule whose fire times depend on zone data, and its planning state: the guard of a move. */
export type ZonedSchedule = CursorState & TimedSchedule;

interface ZonedPage {
  /** The database's clock. */
  now: Instant;
  schedules: ZonedSchedule[];
  /** Where the next page begins; null: there is none. */
  last: string | null;
}

interface Row {
  timing: string;
  now: InstantText;
  last: string | null;
  uid: string | null;
  id: string;
  version: number;
  next_occurrence_at: InstantText | null;
  last_fire_at: InstantText | null;
  updated_at: InstantText;
  created_at: InstantText;
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
  const rows = await rowsOf<Row>(db)(sql`-- listZonedSchedules
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
    now: toInstant(first.now),
    schedules: rows.flatMap((row) => (row.uid === null ? [] : zonedSchedule(row.uid, row))),
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
  const rows = await rowsOf<{ uid: string }>(db)(sql`-- moveCursorsIfUnplanned
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
  await lookAtAlertsOf(
    db,
    rows.map(({ uid }) => uid),
  );
  if (rows.length > 0)
    await db.execute(sql`-- moveCursorsIfUnplanned
    SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
  return rows.length;
}

function zonedSchedule(uid: string, row: Row): ZonedSchedule {
  return {
    uid,
    id: row.id,
    version: row.version,
    timing: row.timing,
    nextOccurrenceAt: toInstantOrNull(row.next_occurrence_at),
    lastFireAt: toInstantOrNull(row.last_fire_at),
    updatedAt: toInstant(row.updated_at),
    createdAt: toInstant(row.created_at),
  };
}
