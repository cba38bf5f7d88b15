import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import { uuids, instants, ints, texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import {
  type InstantText,
  queryPrepared,
  rowsOf,
  toInstant,
  toInstantOrNull,
  unusual,
} from '../../postgres/sql/rows.ts';
import { isUnlisted } from '../instances/instances.ts';
import { noPlanning } from '../instances/installation-row.ts';
import { isOfScope } from '../scopes/in-scope.ts';
import { type LockedRow, type LockedSchedule, type UnusualOfSchedule, lockedSchedule } from './locked-schedule.ts';

export interface DueSchedules {
  /** The database's clock when it decided what was due. */
  now: Instant;
  locked: LockedSchedule[];
  /** As many were found as were asked for: more may be due. */
  isFull: boolean;
  /** How many of them were taken from an expired lock or a dead instance. */
  takenOver: number;
  /** Due, but locked by another instance; counted up to the batch size, and only if the batch is not full. */
  contended: number;
  /** Maintenance is in force: nothing may be planned. */
  inMaintenance: boolean;
  /** The next moment at which something becomes due; null: nothing will. */
  nextDueAt: Instant | null;
}

interface FireLockRequest {
  instanceId: string;
  limit: number;
  /** Where scopes take turns: how many of each there may be, instead of `limit`. */
  scopes?: readonly { prefix: string; limit: number }[] | null;
  lockTtlSeconds: number;
  /** Schedules that this instance is still planning; any other lock of its own is left from a failed round. */
  walking: readonly string[];
}

/** One row holds the values of the whole batch, every other row is one schedule. Columns of the other kind are null. */
type Row = (LockedRow & { head: null }) | { uid: null; head: Head };

interface Head {
  now: InstantText;
  locked_at: InstantText;
  next_due_at: InstantText | null;
  contended: number;
  is_full: boolean;
  in_maintenance: boolean | null;
}

/**
 * Takes the fire-lock of due schedules, oldest first, in one statement. It takes a lock that is free, expired, its own from a
 * failed round, or that of an instance that is not alive. Rows that another statement works on are passed over. An instance
 * that was declared dead locks nothing, and none does during maintenance.
 *
 * The update finds the rows by their place (ctid), which is cheaper than by the key. A row that was written while the statement ran, and
 * is still due, has another place: it is left to the next round.
 */
// oxlint-disable-next-line max-lines-per-function -- one statement
export async function lockDueSchedules(db: Executor, request: FireLockRequest): Promise<DueSchedules> {
  const { instanceId, scopes = null } = request;
  const isLockable = lockable(request);
  const limit = scopes === null ? request.limit : Math.min(...scopes.map((scope) => scope.limit));
  const most = scopes === null ? limit : scopes.reduce((sum, scope) => sum + scope.limit, 0);
  const { lockTtlSeconds } = request;
  // clock_timestamp() is volatile: only through a sub-select can the index on next_fire_at use it.
  const rows = await queryPrepared<Row>(db)(sql`-- lockDueSchedules
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    me AS MATERIALIZED (
      SELECT EXISTS (SELECT FROM instances WHERE id = ${instanceId} AND died_at IS NULL) AS listed, nullif(${noPlanning}, false) AS resting
    ), due AS MATERIALIZED (
      ${scopes === null ? oldest(isLockable, limit) : oldestOfEach(isLockable, scopes)}
    ), locked AS (
      UPDATE schedules s SET locked_by = ${instanceId}, locked_at = (SELECT now FROM clock)
      FROM (SELECT * FROM due LIMIT (SELECT ${most}::int)) AS due WHERE s.ctid = due.ctid
      RETURNING s.uid, s.id, s.version, s.edition, s.timing, s.planned_through, s.lane, s.priority, s.next_occurrence_at, s.created_at, ${UNUSUAL}
    ), contended AS (
      SELECT FROM schedules
      WHERE enabled AND next_fire_at <= (SELECT now FROM clock)
        AND locked_by <> ${instanceId} AND locked_at >= (SELECT now FROM clock) - make_interval(secs => ${lockTtlSeconds})
      LIMIT ${limit}
    )
    SELECT row_to_json(head) AS head, locked.* FROM (
      SELECT now, now::timestamptz(3) AS locked_at,
        CASE WHEN (SELECT count(*) FROM due) < ${limit} THEN (SELECT count(*) FROM contended)::int ELSE 0 END AS contended,
        (SELECT count(*) FROM due) >= ${limit} AS is_full,
        (SELECT min(next_fire_at) FROM schedules WHERE enabled AND next_fire_at > (SELECT now FROM clock)
          AND next_fire_at < 'infinity') AS next_due_at, (SELECT resting FROM me) AS in_maintenance
      FROM clock) AS head FULL JOIN locked ON false`);
  const head = rows.find(({ uid }) => uid === null)?.head;
  if (!head) throw new Error('the fire-lock statement did not answer');
  const locked = rows.filter((row) => row.uid !== null);
  const lockedAt = toInstant(head.locked_at);
  return {
    now: toInstant(head.now),
    nextDueAt: toInstantOrNull(head.next_due_at),
    isFull: head.is_full,
    contended: head.contended,
    inMaintenance: head.in_maintenance === true,
    takenOver: locked.filter(({ unusual: given }) => given?.taken_over).length,
    locked: locked.map((row) => lockedSchedule(row, lockedAt)),
  };
}

/** Of a schedule `s` that is locked now, and was `due` before. */
const UNUSUAL = unusual({
  overlap: sql`nullif(s.overlap, 'allow')`,
  limit_id: sql`s.limit_id`,
  plan_failures: sql`nullif(s.plan_failures, 0)`,
  has_skips: sql`nullif(s.has_skips, false)`,
  is_bounded: sql`nullif(s.start_within_seconds IS NOT NULL OR s.finish_within_seconds IS NOT NULL, false)`,
  expires_after_seconds: sql`s.expires_after_seconds`,
  observes: sql`nullif(s.report_seconds IS NOT NULL, false)`,
  observe_until: sql`s.observe_until`,
  taken_over: sql`nullif(due.locked_by <> s.locked_by, false)`,
} satisfies Record<keyof UnusualOfSchedule, SQL>);

function lockable({ instanceId, lockTtlSeconds, walking }: FireLockRequest): SQL {
  return sql`(locked_by IS NULL
          OR locked_by = ${instanceId} AND (uid NOT IN (SELECT unnest(${uuids(walking)}))
            OR locked_at < (SELECT now FROM clock) - make_interval(secs => ${lockTtlSeconds / 3}))
          OR locked_at < (SELECT now FROM clock) - make_interval(secs => ${lockTtlSeconds})
          OR ${isUnlisted(sql`locked_by`)})
        AND (SELECT listed AND resting IS NULL FROM me)`;
}

function oldest(isLockable: SQL, limit: number): SQL {
  return sql`SELECT ctid, uid, locked_by FROM schedules
      WHERE enabled AND next_fire_at <= (SELECT now FROM clock)
        AND ${isLockable}
      ORDER BY next_fire_at LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
}

/** Those of a scope with few schedules are found by their ids, whatever is due of the others. */
function oldestOfEach(isLockable: SQL, scopes: readonly { prefix: string; limit: number }[]): SQL {
  const prefixes = scopes.map(({ prefix }) => prefix);
  const each = scopes.map(
    ({ prefix, limit }, index) => sql`SELECT * FROM (SELECT ctid, uid, locked_by FROM schedules
        WHERE enabled AND next_fire_at <= (SELECT now FROM clock) AND ${isOfScope(prefix, prefixes)}
          AND ${isLockable}
        ORDER BY next_fire_at LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS scope_${sql.raw(String(index))}`,
  );
  return sql.join(each, sql` UNION ALL `);
}

/** Gives locks back unplanned, where they are still the caller's: on a clean stop no instance waits for the TTL. */
export async function releaseFireLocksIfMine(db: Executor, instanceId: string): Promise<void> {
  await db.execute(sql`-- releaseFireLocksIfMine
    UPDATE schedules SET locked_by = NULL, locked_at = NULL
    WHERE enabled AND next_fire_at <= (SELECT clock_timestamp()) AND locked_by = ${instanceId}`);
}

/**
 * Takes the fire-locks of all instances, where no statement works on the row at this moment: what they are planning will not be
 * recorded.
 */
export async function freeFireLocks(db: Executor): Promise<void> {
  await db.execute(sql`-- freeFireLocks
    WITH locked AS MATERIALIZED (
      SELECT uid FROM schedules
      WHERE enabled AND next_fire_at <= (SELECT clock_timestamp()) AND locked_by IS NOT NULL
      ORDER BY uid FOR UPDATE SKIP LOCKED
    )
    UPDATE schedules s SET locked_by = NULL, locked_at = NULL FROM locked WHERE s.uid = locked.uid`);
}

interface SetAside {
  uid: string;
  version: number;
  lockedAt: Instant;
  error: string;
  failures: number;
  retryAt: Instant;
}

/**
 * A schedule that cannot be planned keeps its cursor, says why, and is looked at again later; an effect tells of it. Answers how many
 * effects it wrote.
 */
export async function setAsideIfLocked(db: Executor, instanceId: string, rows: readonly SetAside[]): Promise<number> {
  const written = await rowsOf(db)(sql`-- setAsideIfLocked
    WITH aside AS (UPDATE schedules s SET error = a.error, plan_failures = a.failures, next_fire_at = a.retry_at,
      locked_by = NULL, locked_at = NULL
    FROM unnest(${uuids(rows.map((row) => row.uid))}, ${ints(rows.map((row) => row.version))},
      ${instants(rows.map((row) => row.lockedAt))}, ${texts(rows.map((row) => row.error))},
      ${ints(rows.map((row) => row.failures))}, ${instants(rows.map((row) => row.retryAt))})
      AS a(uid, version, locked_at, error, failures, retry_at)
    WHERE s.uid = a.uid AND s.locked_by = ${instanceId} AND s.locked_at = a.locked_at AND s.version = a.version
    RETURNING s.uid, s.version, s.id)
    INSERT INTO effects (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'breaks', 'error', uid, version, id, 'schedule', 'failed', clock_timestamp(), 0 FROM aside RETURNING id`);
  return written.length;
}
