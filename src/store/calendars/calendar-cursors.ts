import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { PlannedUpTo } from '../../core/time/cursors.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { FIRST_UUID, instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, recordsOf } from '../../postgres/sql/rows.ts';
import { lookAtAlertsOf } from '../alerts/alert-effects.ts';
import type { TimedSchedule } from '../schedules/locked-schedule.ts';
import { SCHEDULES_CHANGED } from '../schedules/write-schedules.ts';

/** A schedule that names a calendar, and its planning state: the guard of a move. */
export type CalendarUser = PlannedUpTo & TimedSchedule;

interface Row extends Omit<CalendarUser, 'timing'> {
  timing: string | null;
  enabled: boolean;
}

export interface UserPage {
  /** Only enabled ones: no fire of a paused schedule is due, and resuming it computes its next fire anew. */
  users: CalendarUser[];
  /** The uid after which the next page begins; null: there is none. */
  last: string | null;
}

interface PageAsked {
  after: string | null;
  limit: number;
  /** Only those whose fires an edit may move to a moment that has passed. */
  onlyOwing: boolean;
}

/** Of the next `limit` schedules that name a calendar, by uid, those that are asked for. */
export async function listCalendarUsers(
  db: Executor,
  calendarId: string,
  { after, limit, onlyOwing }: PageAsked,
): Promise<UserPage> {
  const rows = await recordsOf<Row>(db)(sql`-- listCalendarUsers
    ${usersWith(onlyOwing ? MAY_OWE : sql`true`)} WHERE l.calendar_id = ${calendarId} AND l.schedule_uid > ${after ?? FIRST_UUID}::uuid
    ORDER BY l.schedule_uid LIMIT ${limit}`);
  return { users: rows.flatMap(userOf), last: rows.length < limit ? null : (rows.at(-1)?.uid ?? null) };
}

/** As `mayOwe` says. */
const MAY_OWE = sql`s.timing ~ '"onExcluded" *: *"previous"|"pick" *: *[{]'`;

/** Those of these schedules that name a calendar, and are enabled. */
export async function findCalendarUsers(
  db: Executor,
  calendarId: string,
  uids: readonly string[],
): Promise<CalendarUser[]> {
  const rows = await recordsOf<Row>(db)(sql`-- findCalendarUsers
    ${usersWith(sql`true`)} WHERE l.calendar_id = ${calendarId} AND l.schedule_uid = ANY (${uuids(uids)}) ORDER BY l.schedule_uid`);
  return rows.flatMap(userOf);
}

/** Of others, which the page counts as well, nothing else is read. */
const usersWith = (
  condition: SQL,
) => sql`SELECT s.uid, s.id, s.version, CASE WHEN ${condition} THEN s.timing END AS timing, s.enabled, s.next_occurrence_at, s.planned_through, s.updated_at, s.created_at
  FROM schedule_calendars l JOIN schedules s ON s.uid = l.schedule_uid`;

/** When the newest versions of schedules were written. */
export async function readUpdatedAt(db: Executor, uids: readonly string[]): Promise<ReadonlyMap<string, Instant>> {
  if (uids.length === 0) return new Map();
  const rows = await recordsOf<{ uid: string; updatedAt: Instant }>(db)(sql`-- readUpdatedAt
    SELECT uid, updated_at FROM schedules WHERE uid = ANY (${uuids(uids)})`);
  return new Map(rows.map(({ uid, updatedAt }) => [uid, updatedAt]));
}

export interface CalendarMove {
  user: CalendarUser;
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
}

/**
 * Moves cursors that are still as they were read. It clears the fire-lock: a plan that another instance has made from
 * the old cursor is fenced, and made anew. Rows that another transaction has locked are passed over. Answers the uids that
 * it moved. The caller shares the calendars that led to the moves, at the versions that it used.
 */
export async function moveCursorsUnderSharedCalendars(
  tx: Transaction,
  moves: readonly CalendarMove[],
): Promise<ReadonlySet<string>> {
  const users = moves.map(({ user }) => user);
  const moved = await onlyColumnOf<string>(tx)(sql`-- moveCursorsUnderSharedCalendars
    WITH movable AS MATERIALIZED (
      SELECT s.uid, m.next_occurrence_at, m.next_fire_at
      FROM unnest(${uuids(users.map(({ uid }) => uid))}, ${ints(users.map(({ version }) => version))},
        ${instants(users.map(({ nextOccurrenceAt }) => nextOccurrenceAt))},
        ${instants(users.map(({ plannedThrough }) => plannedThrough))},
        ${instants(moves.map((move) => move.nextOccurrenceAt))}, ${instants(moves.map((move) => move.nextFireAt))})
        AS m(uid, version, cursor, planned_through, next_occurrence_at, next_fire_at)
      JOIN schedules s ON s.uid = m.uid
      WHERE s.enabled AND s.version = m.version AND s.next_occurrence_at IS NOT DISTINCT FROM m.cursor
        AND s.planned_through IS NOT DISTINCT FROM m.planned_through
      ORDER BY s.uid FOR NO KEY UPDATE OF s SKIP LOCKED
    )
    UPDATE schedules s SET next_occurrence_at = m.next_occurrence_at,
      next_fire_at = CASE WHEN s.error IS NULL THEN m.next_fire_at ELSE s.next_fire_at END,
      locked_by = NULL, locked_at = NULL
    FROM movable m WHERE s.uid = m.uid RETURNING s.uid`);
  await lookAtAlertsOf(tx, moved);
  if (moved.length > 0)
    await tx.execute(sql`-- moveCursorsUnderSharedCalendars
    SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
  return new Set(moved);
}

function userOf({ enabled, timing, ...row }: Row): CalendarUser[] {
  return enabled && timing !== null ? [{ ...row, timing }] : [];
}

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

/** How far a walk along the users of a calendar has come. */
export interface WalkPosition {
  /** All next fires are moved, and what is owed is being recorded. */
  owing: boolean;
  /** The uid of the last user that was seen to; null: none was. */
  after: string | null;
  /** Some users before that one were left for later. */
  hasLeft: boolean;
}

interface Walk {
  calendarId: string;
  version: number;
  walker: string;
}

/** Longer than a step of a walk may take. */
const KEPT_SECONDS = 20;
const BEGINNING: WalkPosition = { owing: false, after: null, hasLeft: false };

/**
 * Nobody else walks for this version of the calendar until it is given up, or was not taken again for a while. `at`: how far this walker
 * has come; null: it goes on where another one has ended. Answers where it goes on; null: somebody else walks, or for a newer version.
 */
export async function takeWalk(
  db: Executor,
  { calendarId, version, walker }: Walk,
  at: WalkPosition | null,
): Promise<WalkPosition | null> {
  const { owing, after, hasLeft } = at ?? BEGINNING;
  const inherits = sql`${at === null} AND w.version = excluded.version`;
  const [position = null] = await recordsOf<WalkPosition>(db)(sql`-- takeWalk
    INSERT INTO calendar_walks AS w (calendar_id, version, walker, until, owing, after, has_left)
    SELECT ${calendarId}, ${version}, ${walker}::uuid, clock_timestamp() + make_interval(secs => ${KEPT_SECONDS}),
      ${owing}, ${after}::uuid, ${hasLeft}
    ON CONFLICT (calendar_id) DO UPDATE SET version = excluded.version, walker = excluded.walker, until = excluded.until,
      owing = CASE WHEN ${inherits} THEN w.owing ELSE excluded.owing END,
      after = CASE WHEN ${inherits} THEN w.after ELSE excluded.after END,
      has_left = CASE WHEN ${inherits} THEN w.has_left ELSE excluded.has_left END
    WHERE w.version < excluded.version
      OR w.version = excluded.version AND (w.walker = excluded.walker OR w.until <= clock_timestamp())
    RETURNING owing, after, has_left`);
  return position;
}

/** Anybody may go on where these walkers said last how far they were. */
export async function giveUpWalks(db: Executor, walkers: readonly string[]): Promise<void> {
  if (walkers.length === 0) return;
  await db.execute(sql`-- giveUpWalks
    UPDATE calendar_walks SET until = clock_timestamp() WHERE walker = ANY (${uuids(walkers)})`);
}
