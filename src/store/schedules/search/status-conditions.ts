import { type SQL, sql } from 'drizzle-orm';
import { CALENDAR_ENDS_DAYS } from '../../../core/alerts/alert.ts';

/** For a row named `schedules`: whether nothing is left for it to fire, or to follow. */
export const isOver = sql`(schedules.next_fire_at IS NULL AND NOT schedules.heartbeat AND (schedules.after_uid IS NULL
  OR coalesce(schedules.after_end_at <= (SELECT clock_timestamp()), false)))`;

/**
 * For a row named `schedules`: whether it is not active, or has no next fire of its own. Few rows are so, and these have an index,
 * `schedules_apart`. It contains every status but `active`.
 */
export const isApart = sql`(NOT schedules.enabled OR schedules.error IS NOT NULL OR schedules.next_fire_at IS NULL)`;

/** Of schedules that are late: of which such an episode is open. */
export const LATE_UIDS = sql`SELECT a.schedule_uid FROM alerts a WHERE a.kind = 'late' AND a.until IS NULL`;

/** Of a row `c` of `calendars`: its end is near, or was. Days of UTC. */
export const ENDS_SOON: SQL = sql`c.valid_until <= (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + ${sql.raw(String(CALENDAR_ENDS_DAYS))})`;
