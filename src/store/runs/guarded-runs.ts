import { type SQL, sql } from 'drizzle-orm';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { OpenRuns } from '../../core/schedules/overlap.ts';
import type { Overlap } from '../../core/schedules/schedule.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

const IS_ACTIVE = sql`overlap_guarded AND status IN ('pending', 'running')`;

/** An active run that gives way to a newer one, in the words of the index `runs_replaceable`. */
export const IS_REPLACEABLE = sql`${IS_ACTIVE} AND trigger <> 'backfill' AND retried_after IS NULL`;

/** An active run that started beside others, and gives way to none: the words of the index `runs_beside`. */
const IS_BESIDE = sql`${IS_ACTIVE} AND (trigger = 'backfill' OR retried_after IS NOT NULL)`;

/** Whether a guarded run of the schedule is active. */
export function hasActive(scheduleUid: SQL): SQL {
  const found = (condition: SQL) => sql`EXISTS (SELECT FROM runs WHERE schedule_uid = ${scheduleUid} AND ${condition})`;
  return sql`(${found(IS_REPLACEABLE)} OR ${found(IS_BESIDE)})`;
}

const IS_WAITING = sql`overlap_guarded AND status = 'waiting'`;

/**
 * Whether no guarded run of the schedule is open, and none is still to be marked: then one new run starts, whatever the overlap is
 * (judgeOverlap). The caller has the schedule's row locked, by an earlier statement of the transaction.
 */
export function isIdleUnderLock(uid: SQL): SQL {
  return sql`NOT ${isMarking(uid)} AND NOT ${firstOf(uid, IS_WAITING, IN_ORDER)}
    AND NOT ${firstOf(uid, IS_REPLACEABLE, sql`created_at`)} AND NOT ${firstOf(uid, IS_BESIDE)}`;
}

/** Runs of an edited schedule are still to be marked as guarded. */
function isMarking(uid: SQL): SQL {
  return sql`EXISTS (SELECT FROM backlogs WHERE schedule_uid = ${uid} AND kind = 'marked')`;
}

/** Whether it is replaceable, of a run whose row is locked. */
export function isReplaceable({ overlapGuarded, status, trigger, retriedAfter }: RunRecord): boolean {
  return overlapGuarded && status !== 'waiting' && trigger !== 'backfill' && retriedAfter === null;
}

export interface GuardedSchedule extends OpenRuns {
  uid: string;
  overlap: Overlap;
  statuses: ReadonlyMap<string, RunRecord['status']>;
  /** There are more of them than one judgement ends, or some are still to be marked: `replaceable` is empty. */
  moreReplaceable: boolean;
}

interface Row {
  uid: string;
  overlap: Overlap;
  is_active: boolean;
  is_marking: boolean;
  id: string | null;
  status: RunRecord['status'];
}

/**
 * Of these schedules, the waiting runs that came first and the active runs that came last, at most so many of each; and whether a run is
 * active. Each question is a step in an index that knows the answer, asked as a value in the order of the index: as an EXISTS, the
 * server may read all open runs to answer it. While the runs of an edited schedule are still to be marked, those that are not count too.
 */
export async function readGuarded(db: Executor, uids: readonly string[], most: number): Promise<GuardedSchedule[]> {
  const uid = sql`s.uid`;
  const rows = await rowsOf<Row>(db)(sql`-- readGuarded
    SELECT s.uid, s.overlap, m.is_marking, m.is_active, r.id, r.status
    FROM schedules s CROSS JOIN LATERAL (
      SELECT b.is_marking, ${firstOf(uid, IS_REPLACEABLE, sql`created_at`)} OR ${firstOf(uid, IS_BESIDE)}
        OR b.is_marking AND (${firstOf(uid, sql`${IS_OPEN} AND trigger IN (${PLANNED})`, sql`scheduled_for`)}
          OR ${firstOf(uid, sql`${IS_OPEN} AND trigger NOT IN (${PLANNED})`)}) AS is_active
      FROM (SELECT ${isMarking(uid)} AS is_marking OFFSET 0) AS b OFFSET 0
    ) AS m LEFT JOIN LATERAL (
      (SELECT id, status, created_at FROM runs WHERE schedule_uid = s.uid AND ${IS_WAITING}
        ORDER BY ${IN_ORDER} LIMIT ${most + 1})
      UNION ALL (SELECT id, status, created_at FROM runs WHERE schedule_uid = s.uid AND ${IS_REPLACEABLE}
        ORDER BY created_at DESC, id DESC LIMIT CASE WHEN s.overlap = 'replace' THEN ${most + 1}::int ELSE 0 END)
    ) AS r ON true
    WHERE s.uid = ANY (${uuids(uids)}) ORDER BY s.uid, r.created_at, r.id`);
  return [...Map.groupBy(rows, ({ uid }) => uid).values()].map((open) => guardedOf(open, most));
}

/** In which waiting runs came. */
const IN_ORDER = sql`created_at, id`;
const PLANNED = sql.raw(`'schedule', 'catchUp', 'backfill'`);
const IS_OPEN = sql`status IN ('pending', 'running') AND NOT observed`;

/**
 * Whether there is one, as a value. Where an index goes on by nothing else, the range of one uid has the server step into it: of an
 * equality it knows that any order will do, and may read the whole table until it comes by the first.
 */
function firstOf(uid: SQL, condition: SQL, order?: SQL): SQL {
  const [isOf, by] = order
    ? [sql`schedule_uid = ${uid}`, order]
    : [sql`schedule_uid BETWEEN ${uid} AND ${uid}`, sql`schedule_uid`];
  return sql`((SELECT true FROM runs WHERE ${isOf} AND ${condition} ORDER BY ${by} LIMIT 1) IS NOT NULL)`;
}

function guardedOf(rows: readonly Row[], most: number): GuardedSchedule {
  const found = rows.flatMap(({ id, status }) => (id === null ? [] : [{ id, status }]));
  const waiting = found.filter(({ status }) => status === 'waiting').map(({ id }) => id);
  const active = found.filter(({ status }) => status !== 'waiting').map(({ id }) => id);
  const [first] = rows;
  const moreReplaceable = active.length > most || (first?.is_marking ?? false);
  return {
    uid: first?.uid ?? '',
    overlap: first?.overlap ?? 'allow',
    statuses: new Map(found.map(({ id, status }) => [id, status])),
    waiting: waiting.slice(0, most),
    moreWait: waiting.length > most,
    isActive: first?.is_active ?? false,
    replaceable: moreReplaceable ? [] : active,
    moreReplaceable,
  };
}
