import { and, asc, eq, gt, gte, inArray, lt, lte, or, type SQL, sql } from 'drizzle-orm';
import type { NameRange, Scope } from '../../../core/access/scope.ts';
import type { Schedule, ScheduleStatus } from '../../../core/schedules/schedule.ts';
import { readDefinition } from '../../../core/schedules/stored-definition.ts';
import { TryAgain } from '../../../postgres/errors.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { schedules, scheduleVersions } from '../../../postgres/schema.ts';
import { texts, uuids } from '../../../postgres/sql/arrays.ts';
import { type PageRoom, containing, readInRoom, rowBytes, withinRoom } from '../../../postgres/sql/lists.ts';
import { onlyColumnOf } from '../../../postgres/sql/rows.ts';
import { namesSeen } from '../../scopes/in-scope.ts';
import { isApart, isOver, LATE_UIDS } from './schedule-conditions.ts';

/** The status by its name in the API, from the columns of the row. */
const status = sql<ScheduleStatus>`CASE WHEN NOT ${schedules.enabled} THEN 'paused'
  WHEN ${schedules.error} IS NOT NULL THEN 'error'
  WHEN ${isOver} THEN 'ended' ELSE 'active' END`;

/** Evaluated for each row of a result: by the index for a few rows, by all that are late for many. */
const late = sql<boolean>`CASE WHEN ${schedules.outcomeWatched} AND ${schedules.enabled} AND NOT ${isOver}
  THEN EXISTS (${LATE_UIDS} AND a.schedule_uid = ${schedules.uid}) ELSE false END`;

const bytesOfDefinition = sql<number>`(${rowBytes({
  texts: [sql`${scheduleVersions.payload}`],
  documents: [sql`${scheduleVersions.definition}`],
})})`;

export interface ScheduleFilter {
  enabled?: boolean | undefined;
  late?: boolean | undefined;
  statuses?: readonly ScheduleStatus[] | undefined;
  /** All of them must match. */
  labels?: readonly (readonly [key: string, value: string])[] | undefined;
  /** Part of the id or the description, in any letter case. */
  text?: string | undefined;
  /** Only ids after this one. */
  after?: string | undefined;
  /** Only ids up to this one. */
  upTo?: string | undefined;
  /** Only ids of this range. */
  within?: NameRange | undefined;
  limit: number;
  /** Where its bytes end, the list ends. */
  room?: PageRoom;
}

export async function findSchedule(db: Executor, id: string): Promise<Schedule | null> {
  const [row] = await select(db, 'findSchedule').where(eq(schedules.id, id));
  return row ? toSchedule(row) : null;
}

/** Ordered by id. */
export async function listSchedules(db: Executor, filter: ScheduleFilter): Promise<Schedule[]> {
  const rows = await readInRoom(
    filter.room,
    () => pageOfSchedules(db, filter),
    ({ bytes }) => bytes,
  );
  return rows.map(toSchedule);
}

/**
 * The statement. Schedules that are not plainly active have an index in this order. All else is read by id until the page is full: for
 * text, labels or a rare status it may read all schedules.
 */
export function pageOfSchedules(db: Executor, filter: ScheduleFilter) {
  const { limit, room } = filter;
  const query = select(db, 'listSchedules', room);
  return query.where(conditions(filter)).orderBy(asc(schedules.id)).limit(limit);
}

/**
 * The named schedules that exist, their rows locked until the transaction ends, in the order in which every multi-row
 * lock is taken. `NO KEY UPDATE` does not block transactions that only need the row to stay; a delete needs `UPDATE`.
 */
export async function lockSchedules(
  tx: Executor,
  ids: readonly string[],
  strength: 'NO KEY UPDATE' | 'UPDATE' = 'NO KEY UPDATE',
): Promise<Map<string, Schedule>> {
  // One parameter: with one for each id, building and reading the statement was a good part of an import.
  const named = sql`${schedules.id} = ANY(${texts(ids)})`;
  const locked = await onlyColumnOf<string>(tx)(sql`-- lockSchedules
    SELECT uid FROM schedules WHERE ${named} ORDER BY uid FOR ${sql.raw(strength)}`);
  // A second statement: the first one's snapshot is older than its locks.
  const rows = await select(tx, 'lockSchedules').where(named);
  const uids = new Set(locked);
  if (rows.some((row) => !uids.has(row.schedule.uid))) {
    // Deleted and created again while its lock was waited for: what is there now is not locked.
    throw new TryAgain('a schedule was created while its id was looked at');
  }
  return new Map(rows.map((row) => [row.schedule.id, toSchedule(row)]));
}

/** The uids of every schedule that ever had the id, including deleted ones; none, if a caller of this scope may not read it. */
export async function uidsOf(db: Executor, id: string, scope: Scope): Promise<string[]> {
  const conditions = [sql`schedule_id = ${id}`, ...namesSeen(sql`schedule_id`, scope)];
  return onlyColumnOf<string>(db)(sql`-- uidsOf
    SELECT DISTINCT schedule_uid AS uid FROM schedule_versions WHERE ${sql.join(conditions, sql` AND `)}`);
}

/** A statement of the query builder, which begins with its name as those by hand do. */
function select(db: Executor, name: string, room?: PageRoom) {
  const query = db
    .select({
      schedule: schedules,
      status,
      late,
      definition: scheduleVersions.definition,
      payload: scheduleVersions.payload,
      bytes: bytesOfDefinition.as('row_bytes'),
    })
    .from(schedules)
    .innerJoin(
      scheduleVersions,
      and(eq(scheduleVersions.scheduleUid, schedules.uid), eq(scheduleVersions.version, schedules.version)),
    )
    .$dynamic();
  const built = query.getSQL.bind(query);
  query.getSQL = () => sql`${sql.raw(`-- ${name}\n`)}${withinRoom(built(), sql`p.id`, room)}`;
  return query;
}

export function conditions(filter: Omit<ScheduleFilter, 'limit' | 'room'>): SQL | undefined {
  const { enabled, late: isLate, statuses, labels = [], text, after, upTo, within } = filter;
  return and(
    enabled === undefined ? undefined : eq(schedules.enabled, enabled),
    isLate === undefined ? undefined : sql`${late} = ${isLate}`,
    isLate === true ? sql`${schedules.uid} IN (${LATE_UIDS})` : undefined,
    statuses === undefined ? undefined : inArray(status, [...statuses]),
    enabled === false || statuses?.includes('active') === false ? isApart : undefined,
    ...labels.map(([key, value]) => sql`${scheduleVersions.definition}->'labels'->>${key}::text = ${value}`),
    text === undefined
      ? undefined
      : or(containing(schedules.id, text), containing(sql`${scheduleVersions.definition}->>'description'`, text)),
    after === undefined ? undefined : gt(schedules.id, after),
    upTo === undefined ? undefined : lte(schedules.id, upTo),
    within === undefined ? undefined : and(gte(schedules.id, within.from), lt(schedules.id, within.end)),
  );
}

type Row = Awaited<ReturnType<typeof select>>[number];

function toSchedule(row: Row): Schedule {
  const { uid, id, version, error, nextFireAt, lastFireAt, lockedBy, lockedAt, createdAt, updatedAt } = row.schedule;
  return {
    uid,
    id,
    version,
    definition: readDefinition(row.definition, row.payload),
    lane: row.schedule.lane,
    afterUid: row.schedule.afterUid,
    status: row.status,
    late: row.late,
    error,
    nextFireAt: row.status === 'active' ? nextFireAt : null,
    nextOccurrenceAt: row.schedule.nextOccurrenceAt,
    plannedThrough: row.schedule.plannedThrough,
    lastFireAt,
    hasSkips: row.schedule.hasSkips,
    lockedBy,
    lockedAt,
    createdAt,
    updatedAt,
  };
}

/**
 * Takes the row locks of schedules under which their overlaps are decided, unless another transaction has them. A separate statement
 * before the one that decides: in READ COMMITTED, a statement that has waited for a row lock still sees everything else as it was before
 * it waited. A schedule in neither answer is gone.
 */
export async function lockFreeSchedules(
  tx: Executor,
  uids: readonly string[],
): Promise<{ free: string[]; locked: string[] }> {
  if (uids.length === 0) return { free: [], locked: [] };
  const named = sql`SELECT uid FROM schedules WHERE uid = ANY (${uuids(uids)})`;
  const free = new Set(
    await onlyColumnOf<string>(tx)(sql`-- lockFreeSchedules
    ${named} ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`),
  );
  const there =
    free.size === uids.length
      ? []
      : await onlyColumnOf<string>(tx)(sql`-- lockFreeSchedules
    ${named}`);
  return { free: [...free], locked: there.filter((uid) => !free.has(uid)) };
}
