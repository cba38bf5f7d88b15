import { sql } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { rowBytes } from '../../postgres/sql/lists.ts';
import { onlyColumnOf, recordsOf } from '../../postgres/sql/rows.ts';
import type { NamedRows, NamedThing } from '../names/find-named.ts';
import type { EndingCalendar } from '../../core/alerts/alert.ts';
import { ENDS_SOON, isOver } from '../schedules/search/status-conditions.ts';

export interface Calendar extends NamedThing {
  description: string | null;
  /** As they were sent. */
  dates: readonly string[];
  /** The last day of which it says anything, as `2026-12-31`; null: none is known. */
  validUntil: string | null;
  /** The version by which the next fires of all schedules that use it were moved. */
  appliedVersion: number;
}

export const CALENDAR_ROWS: NamedRows<Calendar> = {
  table: 'calendars',
  whole: (
    page,
  ) => sql`SELECT n.*, coalesce(v.dates, '[]') AS dates, ${rowBytes({ documents: [sql`v.dates`] })} AS row_bytes
    FROM (${page}) AS n JOIN calendar_versions v ON v.calendar_id = n.id AND v.version = n.version`,
  columnsOf: ({ description, validUntil, appliedVersion }) => ({
    ...{ description, valid_until: validUntil, applied_version: appliedVersion },
  }),
};

interface UnappliedAsked {
  /** Edited at least so long ago. */
  seconds: number;
  /** Those behind this id first. */
  after: string;
  limit: number;
  /** Who of this process walks along users of calendars. */
  walkers: readonly string[];
}

/** Calendars by id whose users' next fires do not all follow the last edit yet, and along whose users nobody else walks. */
export async function listUnapplied(
  db: Executor,
  { seconds, after, limit, walkers }: UnappliedAsked,
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- listUnapplied
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT id FROM calendars c WHERE applied_version < version
      AND updated_at <= (SELECT now FROM clock) - make_interval(secs => ${seconds})
      AND NOT EXISTS (SELECT FROM calendar_walks w WHERE w.calendar_id = c.id AND w.version = c.version
        AND w.until > (SELECT now FROM clock) AND w.walker <> ALL (${uuids(walkers)}))
    ORDER BY id <= ${after}, id LIMIT ${limit}`);
}

/** Those among these that end soon, or have ended; the first to end first. */
export async function endingAmong(db: Executor, ids: readonly string[]): Promise<EndingCalendar[]> {
  if (ids.length === 0) return [];
  return recordsOf<EndingCalendar>(db)(sql`-- endingAmong
    SELECT id, valid_until FROM calendars c WHERE id = ANY (${texts(ids)}) AND ${ENDS_SOON} ORDER BY valid_until, id`);
}

/**
 * Uids of schedules of which an alert of the kind `calendar` is to be opened or closed. It reads all users of the calendars that end
 * soon: a look for every few minutes.
 */
export async function findCalendarLooks(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- findCalendarLooks
    WITH wanted AS MATERIALIZED (
      SELECT DISTINCT schedules.uid FROM calendars c JOIN schedule_calendars l ON l.calendar_id = c.id
      JOIN schedules ON schedules.uid = l.schedule_uid
      WHERE ${ENDS_SOON} AND schedules.enabled AND (schedules.error IS NOT NULL OR NOT ${isOver})
    ), told AS MATERIALIZED (SELECT schedule_uid AS uid FROM alerts WHERE kind = 'calendar' AND until IS NULL)
    SELECT uid FROM ((SELECT uid FROM wanted EXCEPT SELECT uid FROM told)
      UNION ALL (SELECT uid FROM told EXCEPT SELECT uid FROM wanted)) AS looks
    WHERE uid <> ALL (${uuids(besides)}) LIMIT ${limit}`);
}
