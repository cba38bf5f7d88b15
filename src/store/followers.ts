import { type SQL, sql } from 'drizzle-orm';
import { texts } from './arrays.ts';
import type { Executor } from './executor.ts';
import { rowsOf } from './rows.ts';

/** Stands for every schedule that is not itself an `after` schedule. */
export const ALL_SCHEDULES = '00000000-0000-0000-0000-000000000000';

/** What the ends of runs brought about, in the commit of these ends. */
export interface Aftermath {
  /** Schedules of which a run may start now, or is not judged yet: see judgeOverlaps. */
  toJudge: string[];
  /** Runs of schedules that follow, to be claimed by anybody. */
  toClaim: number;
}

export const NO_AFTERMATH: Aftermath = { toJudge: [], toClaim: 0 };

/**
 * CTEs that record one run for each end in `changed` and each enabled schedule that follows it: in the very statement of the end, so
 * that neither is without the other. `changed` has id, schedule_uid, status, finished_at and overlap_guarded of the runs that the
 * statement wrote, ended or not; a CTE `clock` is there. A schedule that must not overlap gets it as waiting, to be judged.
 *
 * A schedule that is being deleted is waited for; one that is being edited is not, since that may take long and holds up the ends of
 * others: it follows as it was.
 */
export function followEnds(changed: SQL): SQL {
  return sql`ends AS MATERIALIZED (
      SELECT id, schedule_uid, status, finished_at, overlap_guarded FROM ${changed}
      WHERE status NOT IN ('waiting', 'pending', 'running')
    ), followers AS MATERIALIZED (
      SELECT s.uid, s.id, s.version, s.lane, s.priority, s.overlap, s.after_jitter_seconds, ends.id AS parent_run_id,
        date_trunc('milliseconds', ends.finished_at) AS at
      FROM ends JOIN schedules s ON s.after_uid = ANY (ARRAY[ends.schedule_uid, ${ALL_SCHEDULES}::uuid])
      WHERE s.after_uid IS NOT NULL AND s.enabled AND ends.status = ANY (s.after_on)
        AND coalesce(ends.finished_at >= s.after_start_at, true) AND coalesce(ends.finished_at < s.after_end_at, true)
        AND (s.after_uid = ends.schedule_uid OR NOT EXISTS (
          SELECT FROM schedules parent WHERE parent.uid = ends.schedule_uid AND parent.after_uid IS NOT NULL))
        AND (SELECT EXISTS (SELECT FROM schedules WHERE after_uid IS NOT NULL))
      ORDER BY s.uid, ends.id FOR KEY SHARE OF s
    ), followed AS (
      INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
        due_at, attempts, parent_run_id, overlap_guarded, created_at, updated_at)
      SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
        at, uid, version, id, 'after', CASE WHEN overlap = 'allow' THEN 'pending' ELSE 'waiting' END, lane, priority,
        at + make_interval(secs => random() * coalesce(after_jitter_seconds, 0)), 0, parent_run_id, overlap <> 'allow',
        clock.now, clock.now
      FROM followers, clock
      RETURNING schedule_uid, overlap_guarded
    ), aftermath AS (
      SELECT string_agg(DISTINCT schedule_uid::text, ',') FILTER (WHERE overlap_guarded) AS to_judge,
        count(*) FILTER (WHERE NOT overlap_guarded AND recorded)::int AS to_claim
      FROM (SELECT schedule_uid, overlap_guarded, false AS recorded FROM ends
        UNION ALL SELECT schedule_uid, overlap_guarded, true FROM followed) AS touched
    )`;
}

/** The columns of `aftermath`, which is one row. */
export interface AftermathRow {
  to_judge: string | null;
  to_claim: number;
}

export function aftermathOf({ to_judge, to_claim }: AftermathRow): Aftermath {
  return { toJudge: to_judge?.split(',') ?? [], toClaim: to_claim };
}

export function together(aftermaths: readonly Aftermath[]): Aftermath {
  return {
    toJudge: [...new Set(aftermaths.flatMap(({ toJudge }) => toJudge))],
    toClaim: aftermaths.reduce((sum, { toClaim }) => sum + toClaim, 0),
  };
}

export interface Followed {
  uid: string;
  /** Whom it follows in turn; null: it has fire times of its own. */
  afterUid: string | null;
}

/** The schedules of these ids, locked against edits until the transaction ends, so that nobody else can close a circle with them. */
export async function lockFollowed(tx: Executor, ids: readonly string[]): Promise<Map<string, Followed>> {
  const rows = await rowsOf<{ uid: string; id: string; after_uid: string | null }>(
    tx,
    sql`SELECT uid, id, after_uid FROM schedules WHERE id = ANY (${texts(ids)}) ORDER BY uid FOR SHARE`,
  );
  return new Map(rows.map(({ uid, id, after_uid }) => [id, { uid, afterUid: after_uid }]));
}

/** Whom the schedule of this uid follows, under the same lock; null: nobody, or it is not there. */
export async function lockAncestor(tx: Executor, uid: string): Promise<string | null> {
  const [row] = await rowsOf<{ after_uid: string | null }>(
    tx,
    sql`SELECT after_uid FROM schedules WHERE uid = ${uid} FOR SHARE`,
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
