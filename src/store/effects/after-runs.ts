import { type SQL, sql } from 'drizzle-orm';
import { bigints, instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { isPull } from '../queues/queue-lanes.ts';
import { isReady } from '../runs/ready.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { type Effect, deleteEffects, lockEffectsAgain } from './effect-rows.ts';
import { ALL_SCHEDULES, follows } from './followers.ts';

interface AfterRuns {
  /** Runs that may be claimed, and whether workers may pull some of them. */
  toClaim: number;
  toPull: boolean;
  /** Runs that wait for a place of their limit. */
  toAdmit: boolean;
  /** Schedules with a run that waits until it is judged; their rows are locked. */
  toJudge: string[];
  /** Effects about one follower that is locked by another transaction. */
  passedOver: ReadonlySet<Effect>;
  /** Effects that it wrote: one for each end and each follower that is locked. */
  effects: number;
}

/**
 * Records one run for each of these ends and each enabled schedule that follows it, as that schedule stands now. The followers' rows
 * are locked first, by a separate statement, so that an edit or a deletion comes wholly before or wholly after. A follower that another
 * transaction has locked gets an effect of its own, so that it delays no other. A follower that must not overlap gets a waiting run,
 * which is judged under a separate lock.
 */
export async function recordAfterRuns(tx: Transaction, ends: readonly Effect[]): Promise<AfterRuns> {
  if (ends.length === 0) return { ...NOTHING, toJudge: [], passedOver: new Set(), effects: 0 };
  const { free, held } = await lockFollowers(tx, ends);
  const effects = await writeFollowerEffects(tx, ends, held);
  const rows = await insertRunsOf(tx, ends, free);
  const pending = rows.filter(({ status }) => status === 'pending');
  const waiting = rows.filter(({ status }) => status === 'waiting');
  return {
    toClaim: pending.length,
    toPull: pending.some(({ is_pull }) => is_pull),
    toAdmit: pending.some(({ is_limited }) => is_limited),
    toJudge: [...new Set(waiting.map(({ schedule_uid }) => schedule_uid))],
    passedOver: new Set(ends.filter(({ followerUid }) => followerUid !== null && held.includes(followerUid))),
    effects,
  };
}

/** Replaces an effect about all that follow by one for each of them, so that one which the database refuses is put off alone. */
export async function splitByFollower(tx: Transaction, effect: Effect): Promise<void> {
  const [stillThere] = await lockEffectsAgain(tx, [effect.id]);
  if (!stillThere) return;
  const followers = await rowsOf<{ uid: string }>(tx, uidsOfFollowers([stillThere]));
  await writeFollowerEffects(
    tx,
    [stillThere],
    followers.map(({ uid }) => uid),
  );
  await deleteEffects(tx, [effect.id]);
}

const NOTHING = { toClaim: 0, toPull: false, toAdmit: false };

interface InsertedRow {
  schedule_uid: string;
  status: 'pending' | 'waiting';
  is_pull: boolean;
  is_limited: boolean;
}

const READY = isReady({ dueAt: sql`f.due_at`, limitId: sql`f.limit_id` }, sql`clock.now`);

async function insertRunsOf(
  tx: Transaction,
  ends: readonly Effect[],
  followerUids: readonly string[],
): Promise<InsertedRow[]> {
  return rowsOf<InsertedRow>(
    tx,
    sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      limit_id, due_at, ready, attempts, parent_run_id, overlap_guarded, outcome_watched, created_at, updated_at)
    SELECT (lpad(to_hex((extract(epoch FROM f.finished_at) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
      f.finished_at, f.uid, f.version, f.id, 'after', CASE WHEN f.overlap = 'allow' THEN 'pending' ELSE 'waiting' END,
      f.lane, f.priority, f.limit_id, f.due_at, ${READY}, 0, f.run_id, f.overlap <> 'allow', f.outcome_watched, clock.now, clock.now
    FROM (SELECT clock_timestamp() AS now) AS clock, (
      SELECT s.uid, s.version, s.id, s.overlap, s.outcome_watched, s.lane, s.priority, s.limit_id, e.run_id, e.finished_at,
        e.finished_at + make_interval(secs => random() * coalesce(s.after_jitter_seconds, 0)) AS due_at
      FROM unnest(${uuids(ends.map(({ runId }) => (runId === '' ? null : runId)))}, ${uuids(ends.map(({ scheduleUid }) => scheduleUid))},
        ${texts(ends.map(({ status }) => status))}, ${instants(ends.map(({ finishedAt }) => finishedAt))},
        ${uuids(ends.map(({ followerUid }) => followerUid))}) AS e(run_id, schedule_uid, status, finished_at, follower_uid)
      JOIN schedules s ON ${follows(sql`s.after_uid`, sql`e.schedule_uid`)}
      WHERE s.uid = ANY (${uuids(followerUids)}) AND coalesce(s.uid = e.follower_uid, true)
        AND (s.enabled OR coalesce(s.pause_until <= e.finished_at, false)) AND e.status = ANY (s.after_on)
        AND coalesce(e.finished_at >= s.after_start_at, true) AND coalesce(e.finished_at < s.after_end_at, true)
        AND (s.after_uid = e.schedule_uid OR NOT EXISTS (
          SELECT FROM schedules parent WHERE parent.uid = e.schedule_uid AND parent.after_uid IS NOT NULL))
    ) AS f
    RETURNING schedule_uid, status, ${isPull(sql`lane`)} AS is_pull, limit_id IS NOT NULL AS is_limited`,
  );
}

/** Writes an effect for each of these followers of each end whose own effect is about all of them. Answers how many it wrote. */
async function writeFollowerEffects(
  tx: Transaction,
  ends: readonly Effect[],
  followerUids: readonly string[],
): Promise<number> {
  const aboutAll = ends.filter(({ followerUid }) => followerUid === null).map(({ id }) => id);
  if (aboutAll.length === 0 || followerUids.length === 0) return 0;
  const rows = await rowsOf(
    tx,
    sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt,
      follower_uid)
    SELECT e.kind, e.run_id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, e.status, e.finished_at, e.attempt, s.uid
    FROM effects e JOIN schedules s ON ${follows(sql`s.after_uid`, sql`e.schedule_uid`)}
    WHERE e.id = ANY (${bigints(aboutAll)}) AND s.uid = ANY (${uuids(followerUids)})
    RETURNING id`,
  );
  return rows.length;
}

/**
 * Locks the followers of these ends; answers which are free, and which another transaction has locked. A follower that must not overlap
 * is locked alone, since its runs are judged under that lock; the others are shared, so that the ends of many runs do not wait for each
 * other.
 */
async function lockFollowers(
  tx: Transaction,
  ends: readonly Effect[],
): Promise<{ free: readonly string[]; held: readonly string[] }> {
  const followers = uidsOfFollowers(ends);
  const alone = await rowsOf<{ uid: string }>(
    tx,
    sql`${followers} AND overlap <> 'allow' ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`,
  );
  const shared = await rowsOf<{ uid: string }>(
    tx,
    sql`${followers} AND overlap = 'allow' ORDER BY uid FOR SHARE SKIP LOCKED`,
  );
  const free = [...alone, ...shared].map(({ uid }) => uid);
  const isFree = new Set(free);
  const all = await rowsOf<{ uid: string }>(tx, followers);
  return { free, held: all.map(({ uid }) => uid).filter((uid) => !isFree.has(uid)) };
}

function uidsOfFollowers(ends: readonly Effect[]): SQL {
  const parents = [...new Set(ends.map(({ scheduleUid }) => scheduleUid)), ALL_SCHEDULES];
  return sql`SELECT uid FROM schedules WHERE after_uid = ANY (${uuids(parents)})`;
}
