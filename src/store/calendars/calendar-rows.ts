import { type SQL, sql } from 'drizzle-orm';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { rowBytes } from '../../postgres/sql/lists.ts';
import { type InstantText, onlyColumnOf, recordsOf, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { type NamedRows, type NamedThing, deleteNamed, writeNamedRow } from '../names/named-rows.ts';
import type { EndingCalendar } from '../../core/alerts/alert.ts';
import { ENDS_SOON, isOver } from '../schedules/search/schedule-conditions.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { TryAgain } from '../../postgres/errors.ts';
import { SCHEDULES_CHANGED } from '../schedules/write-schedules.ts';

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

type CalendarContent = Pick<Calendar, 'description' | 'dates' | 'validUntil'>;

/** If the id was used before, its versions go on counting. @throws TryAgain if another caller has just created it */
export async function createCalendar(
  tx: Transaction,
  id: string,
  { description, dates, validUntil }: CalendarContent,
): Promise<Calendar> {
  const { version, at } = await addVersion(tx, id, sql`${JSON.stringify(dates)}::jsonb`);
  // It has no users yet.
  const calendar = { id, description, dates, validUntil, version, appliedVersion: version, updatedAt: at };
  await writeNamedRow(tx, CALENDAR_ROWS, calendar, { isNew: true });
  return calendar;
}

/** `movesFires`: its days change. The caller has its row locked. */
export async function changeLockedCalendar(
  tx: Transaction,
  current: Calendar,
  { description, dates, validUntil }: CalendarContent,
  { movesFires }: { movesFires: boolean },
): Promise<Calendar> {
  const { id } = current;
  const { version, at } = await addVersion(tx, id, sql`${JSON.stringify(dates)}::jsonb`);
  const wasApplied = current.appliedVersion === current.version;
  const appliedVersion = wasApplied && !movesFires ? version : current.appliedVersion;
  const calendar = { id, description, dates, validUntil, version, appliedVersion, updatedAt: at };
  await writeNamedRow(tx, CALENDAR_ROWS, calendar, { isNew: false });
  // A plan by the previous version is refused now: its instance should make another one at once.
  await tx.execute(sql`-- changeLockedCalendar
    SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
  return calendar;
}

/** Its content stays readable, for the past. The caller has its row locked. */
export async function deleteLockedCalendar(tx: Transaction, id: string): Promise<number> {
  const { version } = await addVersion(tx, id, sql`NULL`);
  await deleteNamed(tx, 'calendars', id);
  return version;
}

/** All users' next fires follow this version. If an edit has made a newer one meanwhile, that one remains to be applied. */
export async function recordApplied(db: Executor, id: string, version: number): Promise<void> {
  await db.execute(sql`-- recordApplied
    WITH applied AS (UPDATE calendars SET applied_version = ${version}
      WHERE id = ${id} AND applied_version < ${version} AND version >= ${version})
    DELETE FROM calendar_walks WHERE calendar_id = ${id} AND version <= ${version}`);
}

/**
 * Deletes versions that were replaced before a moment: nothing before it is accounted for. The last version stays, also
 * of a deleted calendar, so that its number is not used again. Answers how many it deleted.
 */
export async function dropReplacedBefore(db: Executor, before: Instant, limit: number): Promise<number> {
  const rows = await rowsOf(db)(sql`-- dropReplacedBefore
    DELETE FROM calendar_versions v USING (
      SELECT o.calendar_id, o.version FROM calendar_versions o
      JOIN calendar_versions n ON n.calendar_id = o.calendar_id AND n.version = o.version + 1
      WHERE n.at < ${isoInstant(before)}::timestamptz
        AND NOT EXISTS (SELECT FROM calendars c WHERE c.id = o.calendar_id AND c.applied_version <= o.version)
      ORDER BY o.calendar_id, o.version LIMIT ${limit}
    ) AS old WHERE v.calendar_id = old.calendar_id AND v.version = old.version RETURNING v.version`);
  return rows.length;
}

/** Later than the previous version, whatever the clock says: versions are in the order of time. */
async function addVersion(tx: Transaction, id: string, dates: SQL): Promise<{ version: number; at: Instant }> {
  const [row] = await rowsOf<{ version: number; at: InstantText }>(tx)(sql`-- addVersion
    INSERT INTO calendar_versions (calendar_id, version, at, dates, edition)
    SELECT ${id}, coalesce(last.version, 0) + 1,
      greatest(clock_timestamp(), last.at + interval '1 millisecond'), ${dates}, gen_random_uuid()
    FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
      SELECT version, at FROM calendar_versions WHERE calendar_id = ${id} ORDER BY version DESC LIMIT 1
    ) AS last ON true
    ON CONFLICT DO NOTHING RETURNING version, at`);
  if (!row) throw new TryAgain('a calendar of that id was created meanwhile');
  return { version: row.version, at: toInstant(row.at) };
}
