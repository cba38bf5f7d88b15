import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { type PageRoom, type Sized, readInRoom, rowBytes, withinRoom } from '../../postgres/sql/page-room.ts';
import { containing } from '../../postgres/sql/containing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { readRangeByRange } from '../scopes/range-by-range.ts';

export interface Calendar {
  id: string;
  description: string | null;
  /** As they were sent. */
  dates: readonly string[];
  version: number;
  /** The version by which the next fires of all schedules that use it were moved. */
  appliedVersion: number;
  updatedAt: Instant;
}

interface CalendarFilter {
  scope: Scope;
  /** Part of the id or the description, in any letter case. */
  text?: string | undefined;
  /** Only ids after this one. */
  after?: string | undefined;
  limit: number;
  /** Where its bytes end, the list ends. */
  room?: PageRoom;
}

export async function findCalendar(db: Executor, id: string): Promise<Calendar | null> {
  const [row] = await rowsOf<Row>(db)(sql`-- findCalendar
    ${SELECTED} WHERE c.id = ${id}`);
  return row ? toCalendar(row) : null;
}

/** Ordered by id. */
export async function listCalendars(db: Executor, filter: CalendarFilter): Promise<Calendar[]> {
  const { text, after, room } = filter;
  const conditions: SQL[] = [sql`true`];
  if (after !== undefined) conditions.push(sql`c.id > ${after}`);
  if (text !== undefined)
    conditions.push(sql`(${containing(sql`c.id`, text)} OR ${containing(sql`c.description`, text)})`);
  const rows = await readRangeByRange(filter, sql`c.id`, (inRange, limit) => {
    const page = sql`${SELECTED} WHERE ${sql.join([...conditions, ...inRange], sql` AND `)} ORDER BY c.id LIMIT ${limit}`;
    const read = () =>
      rowsOf<Row & Sized>(db)(sql`-- listCalendars
    ${withinRoom(page, sql`p.id`, room)}`);
    return readInRoom(room, read, ({ row_bytes }) => row_bytes);
  });
  return rows.map(toCalendar);
}

/** Locks its row until the transaction ends: no other transaction writes results of its content. */
export async function lockCalendar(tx: Transaction, id: string): Promise<Calendar | null> {
  await tx.execute(sql`-- lockCalendar
    SELECT FROM calendars WHERE id = ${id} FOR UPDATE`);
  // A second statement: the first one's snapshot is older than its lock.
  return findCalendar(tx, id);
}

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
  const rows = await rowsOf<{ id: string }>(db)(sql`-- listUnapplied
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT id FROM calendars c WHERE applied_version < version
      AND updated_at <= (SELECT now FROM clock) - make_interval(secs => ${seconds})
      AND NOT EXISTS (SELECT FROM calendar_walks w WHERE w.calendar_id = c.id AND w.version = c.version
        AND w.until > (SELECT now FROM clock) AND w.walker <> ALL (${uuids(walkers)}))
    ORDER BY id <= ${after}, id LIMIT ${limit}`);
  return rows.map((row) => row.id);
}

interface Row {
  id: string;
  description: string | null;
  dates: string[] | null;
  version: number;
  applied_version: number;
  updated_at: InstantText;
}

const SELECTED = sql`SELECT c.id, c.description, v.dates, c.version, c.applied_version, c.updated_at,
    ${rowBytes({ documents: [sql`v.dates`] })} AS row_bytes
  FROM calendars c JOIN calendar_versions v ON v.calendar_id = c.id AND v.version = c.version`;

function toCalendar(row: Row): Calendar {
  const { id, description, dates, version } = row;
  return {
    id,
    description,
    dates: dates ?? [],
    version,
    appliedVersion: row.applied_version,
    updatedAt: toInstant(row.updated_at),
  };
}
