import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import type { RunEnd } from '../core/run-end.ts';
import type { RunTrigger } from '../core/run.ts';
import { texts } from './arrays.ts';
import { isPull } from './lanes.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';

/** Stands for every schedule that is not itself an `after` schedule. */
export const ALL_SCHEDULES = '00000000-0000-0000-0000-000000000000';

/** What the ends of runs brought about, in the commit of these ends. */
export interface Aftermath {
  /** Schedules of which a run may start now, or is not judged yet. */
  toJudge: string[];
  /** Runs that follow, or had waited, to be claimed by anybody; some of them, perhaps, by workers. */
  toClaim: number;
  toPull: boolean;
  /** Of when the oldest of them is, where it was not open before; null: all are of today, or were. */
  openedSince: Instant | null;
  /** Runs are there that fail, as what they depended on has. */
  toFail: boolean;
  /** Ended, with so many dependents that some are still to be released. */
  toRelease: readonly EndedDependency[];
  /** Runs that their target was working on when they were cancelled: it is to be told. */
  stopped: readonly StoppedRun[];
}

/** A run that has ended, and that others depend on. */
export interface EndedDependency {
  id: string;
  status: RunEnd;
}

export interface StoppedRun {
  id: string;
  scheduledFor: Instant;
  scheduleUid: string;
  scheduleVersion: number;
  scheduleId: string | null;
  trigger: RunTrigger;
  attempt: number;
}

export const NO_AFTERMATH: Aftermath = {
  toJudge: [],
  toClaim: 0,
  toPull: false,
  openedSince: null,
  toFail: false,
  toRelease: [],
  stopped: [],
};

/** What a statement that ends runs, named `r`, returns of them for `followEnds`. */
export const ENDED = sql`r.id, r.scheduled_for, r.schedule_uid, r.trigger, r.status, r.finished_at, r.overlap_guarded, r.has_dependents`;
/** The same of runs that a statement inserts: nobody can depend on them yet. */
export const RECORDED = sql`id, scheduled_for, schedule_uid, trigger, status, finished_at, overlap_guarded, has_dependents`;

/**
 * CTEs that record one run for each end in `changed` and each enabled schedule that follows it: in the very statement of the end, so
 * that neither is without the other. `changed` has ENDED of the runs that the statement wrote, ended or not; a CTE `clock` is there; the names `ends`, `followers`, `followed` and `aftermath` are taken
 * with this. A schedule that must not overlap gets its run as waiting, to be judged; and all of them say that their end matters,
 * since the schedule may be edited so at this moment.
 *
 * No row of a schedule is locked: one that somebody has locked must not hold up the ends of others. So what is being edited
 * follows as it was, and what is being deleted may get a run that deleting it again abandons (abandonOpenRuns).
 *
 * The condition on `after_uid` is its equality alone: beside IS NOT NULL the planner takes the index for a list of all
 * followers, and compares each end with each.
 */
export function followEnds(changed: SQL): SQL {
  return sql`ends AS MATERIALIZED (
      SELECT id, scheduled_for, schedule_uid, trigger, status, finished_at, overlap_guarded, has_dependents FROM ${changed}
      WHERE status NOT IN ('waiting', 'pending', 'running')
    ), followers AS MATERIALIZED (
      SELECT s.uid, s.id, s.version, s.lane, s.priority, s.overlap, s.after_jitter_seconds, ends.id AS parent_run_id,
        date_trunc('milliseconds', ends.finished_at) AS at
      FROM ends JOIN schedules s ON s.after_uid = ANY (ARRAY[ends.schedule_uid, ${ALL_SCHEDULES}::uuid])
      WHERE ends.trigger <> 'api' AND s.enabled AND s.timing_version = s.version AND ends.status = ANY (s.after_on)
        AND coalesce(ends.finished_at >= s.after_start_at, true) AND coalesce(ends.finished_at < s.after_end_at, true)
        AND (s.after_uid = ends.schedule_uid OR NOT EXISTS (
          SELECT FROM schedules parent WHERE parent.uid = ends.schedule_uid AND parent.after_uid IS NOT NULL
            AND parent.timing_version = parent.version))
        AND (SELECT EXISTS (SELECT FROM schedules WHERE after_uid IS NOT NULL))
    ), followed AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
        due_at, attempts, parent_run_id, overlap_guarded, created_at, updated_at)
      SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
        at, uid, version, id, 'after', CASE WHEN overlap = 'allow' THEN 'pending' ELSE 'waiting' END, lane, priority,
        at + make_interval(secs => random() * coalesce(after_jitter_seconds, 0)), 0, parent_run_id, true,
        clock.now, clock.now
      FROM followers, clock
      RETURNING schedule_uid, status, lane
    ), aftermath AS (
      SELECT (SELECT string_agg(DISTINCT schedule_uid::text, ',') FROM ends WHERE overlap_guarded) AS ended,
        (SELECT string_agg(DISTINCT schedule_uid::text, ',') FROM followed WHERE status = 'waiting') AS followed,
        (SELECT count(*) FROM followed WHERE status = 'pending')::int AS to_claim,
        (SELECT coalesce(bool_or(${isPull(sql`lane`)}), false) FROM followed WHERE status = 'pending') AS to_pull,
        (SELECT json_agg(json_build_object('id', id, 'status', status))::text FROM ends WHERE has_dependents) AS depended_on
    )`;
}

/** Whether some schedule may follow the end of the run; not yet which ends. */
export function isFollowed(run: SQL): SQL {
  return sql`EXISTS (SELECT FROM schedules f WHERE f.after_uid = ANY (ARRAY[${run}.schedule_uid, ${ALL_SCHEDULES}::uuid]))`;
}

/** The columns of `aftermath`, which is one row. */
export const AFTERMATH = sql`aftermath.ended, aftermath.followed, aftermath.to_claim, aftermath.to_pull, aftermath.depended_on`;

export interface AftermathRow {
  /** Uids, comma-separated. */
  ended: string | null;
  followed: string | null;
  to_claim: number;
  to_pull: boolean;
  /** JSON: those that others depend on. */
  depended_on: string | null;
}

/**
 * Of ends that no run depended on; any others' are for `aftermathIn`. Of no row: nothing. `judged`: schedules whose own ends have
 * been seen to by who asks.
 */
export function aftermathOf(row: AftermathRow | undefined, judged: readonly string[] = []): Aftermath {
  if (!row) return NO_AFTERMATH;
  const { ended, followed, to_claim, to_pull } = row;
  const ends = uidsIn(ended).filter((uid) => !judged.includes(uid));
  const toJudge = [...new Set([...ends, ...uidsIn(followed)])];
  return { ...NO_AFTERMATH, toJudge, toClaim: to_claim, toPull: to_pull };
}

export function uidsIn(list: string | null): string[] {
  return list?.split(',') ?? [];
}

export function together(aftermaths: readonly Aftermath[]): Aftermath {
  return {
    toJudge: [...new Set(aftermaths.flatMap(({ toJudge }) => toJudge))],
    toClaim: aftermaths.reduce((sum, { toClaim }) => sum + toClaim, 0),
    toPull: aftermaths.some(({ toPull }) => toPull),
    openedSince: oldestOf(aftermaths.map(({ openedSince }) => openedSince)),
    toFail: aftermaths.some(({ toFail }) => toFail),
    toRelease: aftermaths.flatMap(({ toRelease }) => toRelease),
    stopped: aftermaths.flatMap(({ stopped }) => stopped),
  };
}

export function oldestOf(times: readonly (Instant | null)[]): Instant | null {
  return times.reduce((oldest, at) => (oldest === null || (at !== null && at < oldest) ? at : oldest), null);
}

/** Edits of who follows whom come one after the other until the transaction ends: two could close a circle together. */
export async function lockFollowing(tx: Executor): Promise<void> {
  await tx.execute(sql`SELECT pg_advisory_xact_lock(${FOLLOWING_LOCK})`);
}

const FOLLOWING_LOCK = 0x66697265;

/** The uids of schedules, by id, kept from being deleted until the transaction ends. */
export async function keepFollowed(tx: Executor, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await rowsOf<{ uid: string; id: string }>(
    tx,
    sql`SELECT uid, id FROM schedules WHERE id = ANY (${texts(ids)}) ORDER BY uid FOR KEY SHARE`,
  );
  return new Map(rows.map(({ uid, id }) => [id, uid]));
}

/** Whom the schedule of this uid follows; null: nobody, or it is not there. */
export async function followedBy(tx: Executor, uid: string): Promise<string | null> {
  const [row] = await rowsOf<{ after_uid: string | null }>(
    tx,
    sql`SELECT after_uid FROM schedules WHERE uid = ${uid}`,
  );
  return row?.after_uid ?? null;
}

/** Ids of schedules that follow this one, by id; at most `limit`. */
export async function followersOf(tx: Executor, uid: string, limit: number): Promise<string[]> {
  const rows = await rowsOf<{ id: string }>(
    tx,
    sql`SELECT id FROM schedules WHERE after_uid IS NOT NULL AND after_uid = ${uid} ORDER BY id LIMIT ${limit}`,
  );
  return rows.map((row) => row.id);
}
