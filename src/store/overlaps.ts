import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import { scheduledForOf } from '../core/run.ts';
import { uuids } from './arrays.ts';
import { aftermathIn } from './dependents.ts';
import type { Executor, Transaction } from './executor.ts';
import {
  AFTERMATH,
  type Aftermath,
  type AftermathRow,
  ENDED,
  type StoppedRun,
  followEnds,
} from './followers.ts';
import { isPull } from './lanes.ts';
import { sinceDayOf } from './open-runs.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';
import { overlapOf } from './timings.ts';

/** What became of the runs of some schedules that must not overlap. */
export interface Judged {
  /** Waiting ones that are pending now. */
  started: number;
  skipped: number;
  /** Active ones, and waiting ones, that gave way to a newer one. */
  replaced: number;
  /** Schedules that were passed over, since somebody has a run of theirs locked: they are judged later. */
  held: string[];
  aftermath: Aftermath;
}

/**
 * Takes the row locks under which it is decided which run of a schedule may start, of those that nobody else has locked. A
 * statement of its own, before the one that decides: in READ COMMITTED a statement that has waited for a row lock still
 * looks at everything else as it was before it waited. Answers these, and those that others have; what is neither is gone.
 */
export async function lockFreeForOverlap(
  tx: Executor,
  uids: readonly string[],
): Promise<{ free: string[]; held: string[] }> {
  const named = sql`SELECT uid FROM schedules WHERE uid = ANY (${uuids(uids)})`;
  const locked = await rowsOf<{ uid: string }>(tx, sql`${named} ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
  const free = new Set(locked.map((row) => row.uid));
  const there = free.size === uids.length ? [] : await rowsOf<{ uid: string }>(tx, named);
  return { free: [...free], held: there.map((row) => row.uid).filter((uid) => !free.has(uid)) };
}

/**
 * Decides, in the order in which they came, which waiting runs of these schedules start, go on waiting, or are skipped; under
 * `replace` the active one is cancelled. The caller holds the schedules' row locks, taken by an earlier statement of this
 * transaction. No row of a run is waited for.
 */
export async function judgeOverlapsUnderLock(tx: Transaction, uids: readonly string[]): Promise<Judged> {
  const { held, since } = await lockRunsToJudge(tx, uids);
  const judged = uids.filter((uid) => !held.includes(uid));
  const [row] = await rowsOf<JudgedRow & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    open AS MATERIALIZED (
      SELECT r.scheduled_for, r.id, r.schedule_uid, r.status, r.created_at, ${overlapOf(sql`s`)} AS overlap,
        r.status = 'waiting' AS waits, count(*) FILTER (WHERE r.status <> 'waiting') OVER schedule AS active
      FROM runs r JOIN schedules s ON s.uid = r.schedule_uid
      WHERE r.schedule_uid = ANY (${uuids(judged)}) AND r.overlap_guarded AND r.status IN ('waiting', 'pending', 'running')
        AND ${sinceDayOf(sql`r.scheduled_for`, since)}
      WINDOW schedule AS (PARTITION BY r.schedule_uid)
    ), placed AS (
      SELECT *, row_number() OVER arrival AS place, row_number() OVER reverse = 1 AS newest
      FROM open
      WINDOW arrival AS (PARTITION BY schedule_uid, waits ORDER BY created_at, scheduled_for, id),
        reverse AS (PARTITION BY schedule_uid, waits ORDER BY created_at DESC, scheduled_for DESC, id DESC)
    ), verdicts AS MATERIALIZED (
      SELECT scheduled_for, id, status, CASE
        WHEN NOT waits THEN CASE WHEN overlap = 'replace' AND EXISTS (
          SELECT FROM open other WHERE other.schedule_uid = placed.schedule_uid AND other.waits) THEN 'cancelled' END
        WHEN overlap = 'allow' OR overlap IN ('skip', 'queue') AND active = 0 AND place = 1 THEN 'pending'
        WHEN overlap = 'replace' THEN CASE WHEN newest THEN 'pending' ELSE 'cancelled' END
        WHEN overlap = 'skip' OR overlap = 'queue' AND NOT newest THEN 'skipped' END AS verdict
      FROM placed
    ), changed AS (
      UPDATE runs r SET status = v.verdict, updated_at = clock.now,
        reason = CASE v.verdict WHEN 'skipped' THEN 'overlap' WHEN 'cancelled' THEN 'replaced' END,
        finished_at = CASE WHEN v.verdict <> 'pending' THEN clock.now END, expires_at = NULL
      FROM verdicts v, clock
      WHERE r.scheduled_for = v.scheduled_for AND r.id = v.id AND ${sinceDayOf(sql`r.scheduled_for`, since)}
        AND v.verdict IS NOT NULL
        AND CASE WHEN r.status = v.status THEN true END
      RETURNING ${ENDED}, v.status AS was, r.schedule_version, r.schedule_id, r.attempts, r.lane
    ), ${followEnds(sql`changed`)}, counted AS (
      SELECT count(*) FILTER (WHERE status = 'pending')::int AS started,
        count(*) FILTER (WHERE status = 'skipped')::int AS skipped,
        count(*) FILTER (WHERE status = 'cancelled')::int AS replaced,
        coalesce(bool_or(status = 'pending' AND ${isPull(sql`lane`)}), false) AS to_pull_started,
        json_agg(json_build_object('id', id, 'scheduleUid', schedule_uid, 'scheduleVersion', schedule_version,
          'scheduleId', schedule_id, 'trigger', trigger, 'attempt', attempts))
          FILTER (WHERE status = 'cancelled' AND was = 'running')::text AS stopped
      FROM changed
    )
    SELECT counted.*, ${AFTERMATH} FROM counted, aftermath`,
  );
  if (!row) throw new Error('the statement about overlaps answered no row');
  const { started, skipped, replaced, to_pull_started, stopped } = row;
  const aftermath = await aftermathIn(tx, row, judged);
  return {
    started,
    skipped,
    replaced,
    held,
    aftermath: {
      ...aftermath,
      toPull: aftermath.toPull || to_pull_started,
      stopped: stoppedIn(stopped),
    },
  };
}

interface JudgedRow {
  started: number;
  skipped: number;
  replaced: number;
  to_pull_started: boolean;
  /** JSON. */
  stopped: string | null;
}

function stoppedIn(list: string | null): StoppedRun[] {
  const runs = JSON.parse(list ?? '[]') as Omit<StoppedRun, 'scheduledFor'>[];
  return runs.map((run) => ({ ...run, scheduledFor: scheduledForOf(run.id) }));
}

/**
 * Locks the runs that a judgement may change; answers the schedules of those that others have locked, and the time of the oldest open
 * run: under the schedules' locks none that is older comes to be judged.
 */
async function lockRunsToJudge(
  tx: Executor,
  uids: readonly string[],
): Promise<{ held: string[]; since: Instant }> {
  const [row] = await rowsOf<{ since: InstantText; held: string | null }>(
    tx,
    sql`WITH open AS MATERIALIZED (
      SELECT r.scheduled_for, r.id, r.schedule_uid, r.status = 'waiting' OR ${overlapOf(sql`s`)} = 'replace' AS may_change
      FROM runs r JOIN schedules s ON s.uid = r.schedule_uid
      WHERE r.schedule_uid = ANY (${uuids(uids)}) AND r.overlap_guarded AND r.status IN ('waiting', 'pending', 'running')
    ), locked AS MATERIALIZED (
      SELECT r.id FROM open JOIN runs r ON r.scheduled_for = open.scheduled_for AND r.id = open.id WHERE open.may_change
      ORDER BY r.scheduled_for, r.id FOR UPDATE OF r SKIP LOCKED
    )
    SELECT coalesce((SELECT min(scheduled_for) FROM open), clock_timestamp()) AS since, (
      SELECT string_agg(DISTINCT schedule_uid::text, ',') FROM open
      WHERE may_change AND NOT EXISTS (SELECT FROM locked WHERE locked.id = open.id)) AS held`,
  );
  if (!row) throw new Error('the statement about open runs answered no row');
  return { held: row.held?.split(',') ?? [], since: toInstant(row.since) };
}

/** Schedules whose open runs were recorded while they could overlap, and now must not: from now on they count. */
export async function guardOpenRuns(tx: Executor, uids: readonly string[]): Promise<void> {
  const of = sql`SELECT scheduled_for, id FROM runs WHERE schedule_uid = ANY (${uuids(uids)})`;
  await tx.execute(
    sql`WITH open AS MATERIALIZED (${of} AND status = 'pending' AND claimed_by IS NULL
      UNION ALL ${of} AND status = 'pending' AND claimed_by IS NOT NULL UNION ALL ${of} AND status = 'running')
    UPDATE runs r SET overlap_guarded = true FROM open
    WHERE r.scheduled_for = open.scheduled_for AND r.id = open.id AND CASE WHEN r.status IN ('pending', 'running') THEN true END`,
  );
}

/**
 * Schedules with runs that wait for nothing: whoever ended what they waited for did not come to judge them. What was written in the
 * last moments may still be in their hands.
 */
export async function findWaitingInVain(db: Executor, openSince: Instant, limit: number): Promise<string[]> {
  const since = (alias: SQL) => sinceDayOf(sql`${alias}.scheduled_for`, openSince);
  const rows = await rowsOf<{ uid: string }>(
    db,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT DISTINCT w.schedule_uid AS uid FROM clock, runs w JOIN schedules s ON s.uid = w.schedule_uid
    WHERE w.overlap_guarded AND w.status = 'waiting' AND w.updated_at < clock.now - make_interval(secs => ${IN_HAND_SECONDS})
      AND ${since(sql`w`)}
      AND (${overlapOf(sql`s`)} <> 'queue' OR NOT EXISTS (
          SELECT FROM runs a WHERE a.schedule_uid = w.schedule_uid AND a.overlap_guarded AND a.status IN ('pending', 'running') AND ${since(sql`a`)})
        OR EXISTS (SELECT FROM runs other WHERE other.schedule_uid = w.schedule_uid AND other.overlap_guarded
          AND other.status = 'waiting' AND other.id <> w.id AND ${since(sql`other`)}))
    LIMIT ${limit}`,
  );
  return rows.map((row) => row.uid);
}

const IN_HAND_SECONDS = 2;

/** Ends what waits for a schedule that is gone: recorded while it was deleted. */
export async function abandonWaitingOfDeleted(
  tx: Transaction,
  openSince: Instant,
  limit: number,
): Promise<{ abandoned: number; aftermath: Aftermath }> {
  const [row] = await rowsOf<{ abandoned: number } & AftermathRow>(
    tx,
    sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    open AS MATERIALIZED (
      SELECT r.scheduled_for, r.id FROM runs r WHERE r.overlap_guarded AND r.status = 'waiting'
        AND ${sinceDayOf(sql`r.scheduled_for`, openSince)} AND NOT EXISTS (SELECT FROM schedules s WHERE s.uid = r.schedule_uid)
      ORDER BY r.scheduled_for, r.id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), abandoned AS (
      UPDATE runs r SET status = 'abandoned', reason = 'deleted', finished_at = clock.now, updated_at = clock.now
      FROM open, clock WHERE r.scheduled_for = open.scheduled_for AND r.id = open.id
        AND ${sinceDayOf(sql`r.scheduled_for`, openSince)}
      RETURNING ${ENDED}
    ), ${followEnds(sql`abandoned`)}
    SELECT (SELECT count(*) FROM abandoned)::int AS abandoned, ${AFTERMATH} FROM aftermath`,
  );
  return { abandoned: row?.abandoned ?? 0, aftermath: await aftermathIn(tx, row) };
}
