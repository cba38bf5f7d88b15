import { sql } from 'drizzle-orm';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';

interface CalendarLink {
  uid: string;
  calendarId: string;
}

/** The calendars that a schedule named before a write, and those that it names after it. */
export interface NamedCalendars {
  uid: string;
  before: readonly string[];
  after: readonly string[];
}

/** The caller has locked the rows of the schedules, and shares those of the calendars. */
export async function linkCalendars(tx: Transaction, named: readonly NamedCalendars[]): Promise<void> {
  const gone = named.flatMap(({ uid, before, after }) => linksOf(uid, before, after));
  const fresh = named.flatMap(({ uid, before, after }) => linksOf(uid, after, before));
  if (gone.length > 0)
    await tx.execute(sql`-- linkCalendars
      DELETE FROM schedule_calendars l USING ${rowsOfLinks(gone)}
      WHERE l.calendar_id = n.calendar_id AND l.schedule_uid = n.schedule_uid`);
  if (fresh.length > 0)
    await tx.execute(sql`-- linkCalendars
      INSERT INTO schedule_calendars (calendar_id, schedule_uid)
      SELECT n.calendar_id, n.schedule_uid FROM ${rowsOfLinks(fresh)} ON CONFLICT DO NOTHING`);
}

function linksOf(uid: string, ids: readonly string[], without: readonly string[]): CalendarLink[] {
  return ids.filter((id) => !without.includes(id)).map((calendarId) => ({ uid, calendarId }));
}

function rowsOfLinks(links: readonly CalendarLink[]) {
  return sql`unnest(${texts(links.map(({ calendarId }) => calendarId))}, ${uuids(links.map(({ uid }) => uid))})
    AS n(calendar_id, schedule_uid)`;
}
