import { sql } from 'drizzle-orm';
import { instants, texts, uuids } from '../arrays.ts';
import type { Transaction } from '../executor.ts';
import { isPull } from '../lanes.ts';
import { rowsOf } from '../rows.ts';
import type { Effect } from './effects.ts';
import { ALL_SCHEDULES } from './followers.ts';

export interface AfterRuns {
  /** Runs that may be claimed, and whether workers may pull some of them. */
  toClaim: number;
  toPull: boolean;
  /** Schedules with a run that waits until it is judged; their rows are locked. */
  toJudge: string[];
  /** Ends of which a follower is locked by another transaction: nothing was recorded for any of them. */
  passedOver: ReadonlySet<string>;
}

/**
 * Records one run for each of these ends and each enabled schedule that follows it, as that schedule stands now. The followers' rows
 * are locked first, by a statement of its own, so that an edit or a deletion comes wholly before or wholly after. A follower that
 * must not overlap gets its run as waiting, to be judged under a lock of its own.
 */
export async function recordAfterRuns(tx: Transaction, ends: readonly Effect[]): Promise<AfterRuns> {
  if (ends.length === 0) return { toClaim: 0, toPull: false, toJudge: [], passedOver: new Set() };
  const passedOver = await lockFollowers(tx, ends);
  const free = ends.filter(({ runId }) => !passedOver.has(runId));
  const rows = await rowsOf<{ schedule_uid: string; status: 'pending' | 'waiting'; is_pull: boolean }>(
    tx,
    sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      due_at, ready, attempts, parent_run_id, overlap_guarded, created_at, updated_at)
    SELECT (lpad(to_hex((extract(epoch FROM f.finished_at) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
      f.finished_at, f.uid, f.version, f.id, 'after', CASE WHEN f.overlap = 'allow' THEN 'pending' ELSE 'waiting' END,
      f.lane, f.priority, f.due_at, f.due_at <= clock.now, 0, f.run_id, f.overlap <> 'allow', clock.now, clock.now
    FROM (SELECT clock_timestamp() AS now) AS clock, (
      SELECT s.uid, s.version, s.id, s.overlap, s.lane, s.priority, e.run_id, e.finished_at,
        e.finished_at + make_interval(secs => random() * coalesce(s.after_jitter_seconds, 0)) AS due_at
      FROM unnest(${uuids(free.map(({ runId }) => runId))}, ${uuids(free.map(({ scheduleUid }) => scheduleUid))},
        ${texts(free.map(({ status }) => status))}, ${instants(free.map(({ finishedAt }) => finishedAt))})
        AS e(run_id, schedule_uid, status, finished_at)
      JOIN schedules s ON s.after_uid = ANY (ARRAY[e.schedule_uid, ${ALL_SCHEDULES}::uuid])
      WHERE s.enabled AND e.status = ANY (s.after_on)
        AND coalesce(e.finished_at >= s.after_start_at, true) AND coalesce(e.finished_at < s.after_end_at, true)
        AND (s.after_uid = e.schedule_uid OR NOT EXISTS (
          SELECT FROM schedules parent WHERE parent.uid = e.schedule_uid AND parent.after_uid IS NOT NULL))
    ) AS f
    RETURNING schedule_uid, status, ${isPull(sql`lane`)} AS is_pull`,
  );
  const pending = rows.filter(({ status }) => status === 'pending');
  const waiting = rows.filter(({ status }) => status === 'waiting');
  return {
    toClaim: pending.length,
    toPull: pending.some(({ is_pull }) => is_pull),
    toJudge: [...new Set(waiting.map(({ schedule_uid }) => schedule_uid))],
    passedOver,
  };
}

/**
 * Answers the ends of which a follower's row could not be had. A follower that must not overlap is locked alone, since its runs are
 * judged under that lock; the others are shared, so that the ends of many runs do not wait for each other.
 */
async function lockFollowers(tx: Transaction, ends: readonly Effect[]): Promise<ReadonlySet<string>> {
  const uids = uuids([...new Set(ends.map(({ scheduleUid }) => scheduleUid)), ALL_SCHEDULES]);
  const followers = sql`SELECT uid, after_uid FROM schedules WHERE after_uid = ANY (${uids})`;
  const alone = await rowsOf<{ uid: string }>(
    tx,
    sql`${followers} AND overlap <> 'allow' ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`,
  );
  const shared = await rowsOf<{ uid: string }>(
    tx,
    sql`${followers} AND overlap = 'allow' ORDER BY uid FOR SHARE SKIP LOCKED`,
  );
  const there = await rowsOf<{ uid: string; after_uid: string }>(tx, followers);
  const free = new Set([...alone, ...shared].map(({ uid }) => uid));
  const held = new Set(there.filter(({ uid }) => !free.has(uid)).map(({ after_uid }) => after_uid));
  if (held.size === 0) return new Set();
  const isHeld = ({ scheduleUid }: Effect) => held.has(scheduleUid) || held.has(ALL_SCHEDULES);
  return new Set(ends.filter(isHeld).map(({ runId }) => runId));
}
