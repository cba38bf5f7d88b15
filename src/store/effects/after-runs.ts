import { sql } from 'drizzle-orm';
import { lateParentId } from '../../core/runs/parent.ts';
import { type ScopeShares, NO_SHARES } from '../../core/access/scope.ts';
import { instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { BOUND_COLUMNS, recordedBounds } from '../runs/bounds.ts';
import {
  AS_OBSERVED,
  isObserved,
  isPull,
  isReady,
  OBSERVED_COLUMNS,
  OBSERVED_VALUES,
  stepTo,
} from '../runs/statement-parts.ts';
import { EXPIRY_COLUMNS, recordedExpiry } from '../runs/begin-by.ts';
import type { ReadyRun } from '../runs/claims/claim-if-ready.ts';
import { laneOfRun } from '../scopes/in-scope.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import type { Effect } from './effect-rows.ts';
import { type FollowerPair, follows, lockFollowers, nextPairs, writePairEffects } from './followers.ts';

interface AfterRuns extends Work {
  /** Runs that are ready to be sent. */
  toSend: readonly ReadyRun[];
  /** Schedules with a run that waits until it is judged; their rows are locked. */
  toJudge: string[];
  /** Effects about one follower that is locked by another transaction. */
  passedOver: readonly Effect[];
  /** Ends with more followers than this transaction has seen to, and how far they are done. */
  begun: readonly Effect[];
}

/**
 * Records one run for each of these ends and each enabled schedule that follows it, as that schedule stands now: for the next followers
 * of each end, up to a bound of all. The followers' rows are locked first, by a separate statement, so that an edit or a deletion comes
 * wholly before or wholly after. A follower that another transaction has locked gets an effect of its own, so that it delays no other. A
 * follower that must not overlap gets a waiting run, which is judged under a separate lock.
 */
export async function recordAfterRuns(
  tx: Transaction,
  ends: readonly Effect[],
  scopeShares: ScopeShares = NO_SHARES,
): Promise<AfterRuns> {
  if (ends.length === 0) return { toSend: [], toJudge: [], passedOver: [], begun: [] };
  const { pairs, begun } = await nextPairs(tx, ends);
  const { free, locked } = await lockFollowers(tx, pairs);
  // One for each end and each follower that is locked.
  const effects = await writePairEffects(
    tx,
    pairs.filter(({ followerUid }) => locked.has(followerUid)),
  );
  const rows = await insertRunsOf(
    tx,
    pairs.filter(({ followerUid }) => free.has(followerUid)),
    scopeShares,
  );
  const pending = rows.filter(({ status }) => status === 'pending');
  const toSend = pending.filter((row) => row.ready && !row.is_pull);
  const waiting = rows.filter(({ status }) => status === 'waiting');
  return {
    toSend,
    toClaim: pending.length - toSend.length,
    toPull: pending.some(({ is_pull }) => is_pull),
    toAdmit: pending.some(({ is_limited }) => is_limited),
    toJudge: [...new Set(waiting.map(({ schedule_uid }) => schedule_uid))],
    passedOver: ends.filter(({ followerUid }) => followerUid !== null && locked.has(followerUid)),
    begun,
    effects,
  };
}

interface InsertedRow extends ReadyRun {
  ready: boolean;
  schedule_uid: string;
  status: 'pending' | 'waiting';
  is_pull: boolean;
  is_limited: boolean;
}

const READY = isReady({ dueAt: sql`f.due_at`, limitId: sql`f.limit_id` }, sql`clock.now`);

function parentIdOf({ runId, scheduleUid }: Effect): string {
  return runId === '' ? lateParentId(scheduleUid) : runId;
}

/** A schedule that was created after the end was recorded does not follow it, however long its other followers take. */
// oxlint-disable-next-line max-lines-per-function -- one statement
async function insertRunsOf(
  tx: Transaction,
  pairs: readonly FollowerPair[],
  scopeShares: ScopeShares,
): Promise<InsertedRow[]> {
  if (pairs.length === 0) return [];
  const ends = pairs.map(({ end }) => end);
  return rowsOf<InsertedRow>(tx)(sql`-- insertRunsOf
    INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, lane, priority,
      limit_id, due_at, ready, attempts, parent_run_id, overlap_guarded, outcome_watched, ${BOUND_COLUMNS}, ${EXPIRY_COLUMNS}, ${OBSERVED_COLUMNS},
      created_at, updated_at)
    SELECT (lpad(to_hex((extract(epoch FROM f.finished_at) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
      f.finished_at, f.uid, f.version, f.id, 'after',
      CASE WHEN f.overlap = 'allow' THEN ${sql.raw(stepTo(null, 'pending', 'recordAfterRuns'))}
        ELSE ${sql.raw(stepTo(null, 'waiting', 'recordAfterRuns'))} END,
      f.lane, f.priority, f.limit_id, f.due_at, NOT f.observed AND ${READY}, 0, f.parent_id, f.overlap <> 'allow', f.outcome_watched,
      ${recordedBounds(sql`f`, sql`f.due_at`)}, ${recordedExpiry(sql`f`, sql`f.due_at`)}, ${OBSERVED_VALUES}, clock.now, clock.now
    FROM (SELECT clock_timestamp() AS now) AS clock, (
      SELECT f.uid, f.version, f.id, ${AS_OBSERVED.overlap} AS overlap, f.outcome_watched, ${AS_OBSERVED.lane} AS lane, f.priority,
        ${AS_OBSERVED.limitId} AS limit_id, f.start_within_seconds, f.finish_within_seconds,
        ${AS_OBSERVED.expiresAfter} AS expires_after_seconds, f.parent_id, f.finished_at, f.due_at, f.report_seconds, f.observed
      FROM (SELECT s.uid, s.version, s.id, s.overlap, s.outcome_watched, ${laneOfRun(scopeShares)}, s.priority, s.limit_id, s.start_within_seconds,
        s.finish_within_seconds, s.expires_after_seconds, s.report_seconds, ${isObserved(sql`s`, sql`e.finished_at`)} AS observed, e.parent_id, e.finished_at,
        e.finished_at + make_interval(secs => random() * coalesce(s.after_jitter_seconds, 0)) AS due_at
      FROM unnest(${uuids(ends.map(parentIdOf))}, ${uuids(ends.map(({ scheduleUid }) => scheduleUid))},
        ${texts(ends.map(({ status }) => status))}, ${instants(ends.map(({ finishedAt }) => finishedAt))},
        ${instants(ends.map(({ createdAt }) => createdAt))}, ${uuids(pairs.map(({ followerUid }) => followerUid))},
        ${texts(ends.map(({ scheduleId }) => scheduleId ?? ''))})
        AS e(parent_id, schedule_uid, status, finished_at, created_at, follower_uid, schedule_id)
      JOIN schedules s ON s.uid = e.follower_uid
        AND ${follows(sql`s.after_uid`, { uid: sql`e.schedule_uid`, id: sql`e.schedule_id` })}
      WHERE (s.enabled OR coalesce(s.pause_until <= e.finished_at, false)) AND e.status = ANY (s.after_on)
        AND s.created_at <= e.created_at
        AND coalesce(e.finished_at >= s.after_start_at, true) AND coalesce(e.finished_at < s.after_end_at, true)
        AND (s.after_uid = e.schedule_uid OR NOT EXISTS (
          SELECT FROM schedules parent WHERE parent.uid = e.schedule_uid AND parent.after_uid IS NOT NULL))
      ) AS f
    ) AS f
    RETURNING id, lane, ready, schedule_uid, status, ${isPull(sql`lane`)} AS is_pull, limit_id IS NOT NULL AS is_limited`);
}
