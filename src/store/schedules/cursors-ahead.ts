import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { firstRunIdAt } from '../../core/runs/run.ts';
import { AHEAD_SECONDS } from '../../core/time/cursors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { TimedSchedule } from './locked-schedule.ts';
import { noteSkipsUnderLock } from './skips.ts';

/** Of a row `s` of schedules: it was planned, or written, while the database's clock was ahead; `clock` has the column `now`. */
export const isAhead = sql`greatest(s.planned_through, s.updated_at) > clock.now + make_interval(secs => ${AHEAD_SECONDS})`;

/** Of a row `s` of schedules, for `planningGoesOnAfter`. */
export const CURSOR = sql`s.planned_through, s.updated_at, s.next_occurrence_at`;

/** As it was read: the guard of its move. */
export interface ScheduleAhead extends TimedSchedule {
  enabled: boolean;
  plannedThrough: Instant | null;
  nextOccurrenceAt: Instant | null;
}

/** Ordered by uid, after the uid `after`. */
export function listSchedulesAhead(
  db: Executor,
  { after, limit }: { after: string; limit: number },
): Promise<ScheduleAhead[]> {
  return recordsOf<ScheduleAhead>(db)(sql`-- listSchedulesAhead
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT s.uid, s.id, s.version, s.timing, s.enabled, s.created_at, s.planned_through, s.next_occurrence_at
    FROM schedules s, clock WHERE ${isAhead} AND s.uid > ${after} ORDER BY s.uid LIMIT ${limit}`);
}

/** Marks fires after `now` that have a run, so that planning passes them over; at most so many (null: all), and answers how many. */
export async function markMade(
  db: Executor,
  uids: readonly string[],
  { now, limit }: { now: Instant; limit: number | null },
): Promise<number> {
  const rows = await rowsOf(db)(sql`-- markMade
    INSERT INTO skips (schedule_uid, fire_at, asked_at, made)
    SELECT r.schedule_uid, r.scheduled_for, clock_timestamp(), true
    FROM unnest(${uuids(uids)}) AS u(uid) JOIN all_runs r ON r.schedule_uid = u.uid
    WHERE r.id > ${firstRunIdAt(now + 1)} AND r.trigger IN ('schedule', 'catchUp', 'backfill')
      AND NOT EXISTS (SELECT FROM skips k WHERE k.schedule_uid = r.schedule_uid AND k.fire_at = r.scheduled_for AND k.made)
    LIMIT ${limit}::int
    ON CONFLICT (schedule_uid, fire_at) DO UPDATE SET made = true RETURNING schedule_uid`);
  return rows.length;
}

export interface SetBack {
  schedule: ScheduleAhead;
  createdAt: Instant;
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
}

/**
 * Sets cursors back to `now`. One that was edited or planned since it was read is left as it is. It clears the fire-lock, so that a plan
 * under way is not written. Answers the uids of those set back. Callers sort by uid.
 */
export async function setBackIfUnmoved(tx: Transaction, moves: readonly SetBack[], now: Instant): Promise<string[]> {
  const schedules = moves.map(({ schedule }) => schedule);
  const at = sql`${isoInstant(now)}::timestamptz`;
  const uids = await onlyColumnOf<string>(tx)(sql`-- setBackIfUnmoved
    UPDATE schedules s SET planned_through = least(s.planned_through, ${at}), updated_at = least(s.updated_at, ${at}),
      created_at = m.created_at, next_occurrence_at = m.next_occurrence_at, next_fire_at = m.next_fire_at,
      locked_by = NULL, locked_at = NULL
    FROM unnest(${uuids(schedules.map(({ uid }) => uid))}, ${ints(schedules.map(({ version }) => version))},
      ${instants(schedules.map(({ plannedThrough }) => plannedThrough))}, ${instants(schedules.map(({ nextOccurrenceAt }) => nextOccurrenceAt))},
      ${instants(moves.map(({ createdAt }) => createdAt))}, ${instants(moves.map(({ nextOccurrenceAt }) => nextOccurrenceAt))},
      ${instants(moves.map(({ nextFireAt }) => nextFireAt))})
      AS m(uid, version, planned_before, next_before, created_at, next_occurrence_at, next_fire_at)
    WHERE s.uid = m.uid AND s.version = m.version AND s.planned_through IS NOT DISTINCT FROM m.planned_before
      AND s.next_occurrence_at IS NOT DISTINCT FROM m.next_before
    RETURNING s.uid`);
  // What was recorded between the last of these marks and the lock: plans move the cursor, so these are backfills.
  await markMade(tx, uids, { now, limit: null });
  await noteSkipsUnderLock(tx, uids);
  return uids;
}
