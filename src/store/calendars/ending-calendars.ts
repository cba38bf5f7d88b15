import { sql } from 'drizzle-orm';
import type { EndingCalendar } from '../../core/alerts/alert.ts';
import type { Executor } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { ENDS_SOON, isOver } from '../schedules/search/status-conditions.ts';

interface Row {
  id: string;
  valid_until: string;
}

/** Those among these that end soon, or have ended; the first to end first. */
export async function endingAmong(db: Executor, ids: readonly string[]): Promise<EndingCalendar[]> {
  if (ids.length === 0) return [];
  const rows = await rowsOf<Row>(db)(sql`-- endingAmong
    SELECT id, valid_until FROM calendars c WHERE id = ANY (${texts(ids)}) AND ${ENDS_SOON} ORDER BY valid_until, id`);
  return rows.map(({ id, valid_until: validUntil }) => ({ id, validUntil }));
}

/**
 * Uids of schedules of which an alert of the kind `calendar` is to be opened or closed. It reads all users of the calendars that end
 * soon: a look for every few minutes.
 */
export async function findCalendarLooks(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  const rows = await rowsOf<{ uid: string }>(db)(sql`-- findCalendarLooks
    WITH wanted AS MATERIALIZED (
      SELECT DISTINCT schedules.uid FROM calendars c JOIN schedule_calendars l ON l.calendar_id = c.id
      JOIN schedules ON schedules.uid = l.schedule_uid
      WHERE ${ENDS_SOON} AND schedules.enabled AND (schedules.error IS NOT NULL OR NOT ${isOver})
    ), told AS MATERIALIZED (SELECT schedule_uid AS uid FROM alerts WHERE kind = 'calendar' AND until IS NULL)
    SELECT uid FROM ((SELECT uid FROM wanted EXCEPT SELECT uid FROM told)
      UNION ALL (SELECT uid FROM told EXCEPT SELECT uid FROM wanted)) AS looks
    WHERE uid <> ALL (${uuids(besides)}) LIMIT ${limit}`);
  return rows.map(({ uid }) => uid);
}
