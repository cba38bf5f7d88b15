import { sql } from 'drizzle-orm';
import type { AttemptSettlement } from '../../../core/runs/attempts/settle-attempt.ts';
import { bigints, fromMs, ints, milliseconds, texts, uuids, anyUid } from '../../../postgres/sql/arrays.ts';
import { ENDED_BY_SUCCESS } from '../../../core/runs/effect.ts';
import { hasOpenAlert } from '../../alerts/alert-effects.ts';
import { isFollowed } from '../../effects/followers.ts';
import type { Executor } from '../../../postgres/executor.ts';
import { idsUnlessAll, isAmong, LOCK_LIMIT, queryPrepared } from '../../../postgres/sql/rows.ts';
import { keepsBoundQuietly } from '../bounds.ts';
import { endedColumns } from '../record-columns.ts';
import { stepTo } from '../statement-parts.ts';

/** Ordered as its index is: otherwise a table that was not analyzed since an import is read whole, to find that no schedule follows. */
const ANY_FOLLOWER = sql`SELECT after_uid FROM schedules WHERE after_uid IS NOT NULL ORDER BY after_uid LIMIT 1`;

interface PlainSettled {
  /** Whether this statement settled the run of that id. */
  settled: (id: string) => boolean;
  /** How many effects there are to see to. */
  effects: number;
}

/**
 * Settles plain successes (isPlainSuccess), in one statement: each row moves to history, with the effects of its end. The guard is the
 * claim; a run that has been through anything else (lost, in doubt, tried before), or of whose bound something is to be said, is left to
 * settleLockedRuns. So is one that another transaction has locked: where a lock is not free within 200 ms the statement fails
 * (isLockedByOthers). No run may be in the batch twice.
 *
 * The guard is a CASE, which hides it from the planner. Statistics say that pending runs are rare: with a plain condition the planner
 * would read all of them first, instead of looking up the batch's ids.
 */
// oxlint-disable-next-line max-lines-per-function -- one statement
export async function settlePlainIfClaimed(db: Executor, plain: readonly AttemptSettlement[]): Promise<PlainSettled> {
  const [row] = await queryPrepared<{ settled: string | null; effects: number }>(db)(sql`-- settlePlainIfClaimed
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now, ${LOCK_LIMIT}),
    ended AS (
      DELETE FROM runs r USING clock, unnest(${uuids(plain.map((one) => one.runId))},
        ${uuids(plain.map((one) => one.instanceId))}, ${texts(plain.map((one) => one.settlement.executionId))},
        ${ints(plain.map((one) => one.settlement.statusCode))}, ${texts(plain.map((one) => one.settlement.body))},
        ${milliseconds(plain.map((one) => one.startedAt))}, ${milliseconds(plain.map((one) => one.finishedAt))},
        ${bigints(plain.map((one) => one.latenessMs))})
        AS i(run_id, instance_id, answered_id, answered_code, answer, started_ms, finished_ms, first_lateness_ms)
      WHERE r.id = i.run_id AND ${anyUid(sql`i.run_id`)}
        AND CASE WHEN r.status = 'pending' THEN r.claimed_by = i.instance_id AND r.attempts = 1 AND r.lost_at IS NULL
          AND r.in_doubt_until IS NULL AND r.attempt_in_doubt IS NULL AND r.attempt_log IS NULL
          AND ${keepsBoundQuietly(fromMs(sql`i.finished_ms`))} END
      RETURNING r.*, clock.now, i.answered_id, i.answered_code, i.answer, i.first_lateness_ms,
        ${fromMs(sql`i.started_ms`)} AS started_at, ${fromMs(sql`i.finished_ms`)} AS answered_at
    ), kept AS (
      INSERT INTO history (${endedColumns.names})
      SELECT ${endedColumns.valuesOf('e', {
        status: stepTo('pending', 'succeeded', 'settlePlainIfClaimed'),
        handoff_started_at: 'e.started_at',
        handed_off_at: 'e.answered_at',
        lateness_ms: 'coalesce(e.lateness_ms, e.first_lateness_ms)',
        execution_id: 'e.answered_id',
        result_status_code: 'e.answered_code',
        result_body: 'e.answer',
        updated_at: 'e.now',
        reason: 'NULL',
        finished_at: 'e.answered_at',
        ended_at: 'e.now',
      })} FROM ended e
    ), followed AS MATERIALIZED (
      SELECT e.id FROM ended e
      WHERE e.trigger NOT IN ('api', 'notify') AND (${ANY_FOLLOWER}) IS NOT NULL
        AND ${isFollowed({ uid: sql`e.schedule_uid`, id: sql`e.schedule_id` })}
    ), healed AS MATERIALIZED (
      SELECT e.id, k.kind FROM ended e CROSS JOIN unnest(${texts(ENDED_BY_SUCCESS)}) AS k(kind)
      WHERE (k.kind <> 'missed' OR e.trigger = 'catchUp') AND ${hasOpenAlert(sql`e.schedule_uid`, sql`k.kind`)}
    ), caused AS (
      INSERT INTO effects (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT k.kind, NULL, e.id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, 'succeeded', e.answered_at, 1
      FROM (SELECT *, id IN (SELECT id FROM followed) AS is_followed FROM ended) AS e
        CROSS JOIN LATERAL (VALUES ('overlap', e.overlap_guarded), ('dependents', e.has_dependents), ('followers', e.is_followed))
          AS k(kind, is_caused)
      WHERE (e.overlap_guarded OR e.has_dependents OR e.is_followed) AND k.is_caused
      UNION ALL SELECT 'heals', h.kind, e.id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, 'succeeded', e.answered_at, 1
      FROM ended e JOIN healed h ON h.id = e.id RETURNING 1
    )
    SELECT ${idsUnlessAll(sql`ended`, plain.length)} AS settled, (SELECT count(*) FROM caused)::int AS effects`);
  if (!row) throw new Error('the settling statement answered no row');
  return { settled: isAmong(row.settled), effects: row.effects };
}
