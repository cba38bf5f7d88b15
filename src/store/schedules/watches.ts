import { sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { OutcomeWatch } from '../../core/schedules/outcome-watch.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';

/** By schedule. Their rows are locked until the transaction ends; the caller has the row locks of the schedules. */
export async function lockWatches(tx: Transaction, uids: readonly string[]): Promise<Map<string, OutcomeWatch>> {
  if (uids.length === 0) return new Map();
  const rows = await recordsOf<OutcomeWatch>(tx)(sql`-- lockWatches
    SELECT * FROM outcome_watches WHERE schedule_uid = ANY (${uuids(uids)}) ORDER BY schedule_uid FOR UPDATE`);
  return new Map(rows.map((watch) => [watch.scheduleUid, watch]));
}

/** Writes their new states, for new or locked rows. */
export async function saveWatches(tx: Executor, watches: readonly OutcomeWatch[]): Promise<void> {
  if (watches.length === 0) return;
  await tx.execute(sql`-- saveWatches
    INSERT INTO outcome_watches (schedule_uid, pause_after_failures, failures_since, success_within_seconds, success_since,
      last_success_at, look_at)
    SELECT * FROM unnest(${uuids(watches.map(({ scheduleUid }) => scheduleUid))},
      ${ints(watches.map(({ pauseAfterFailures }) => pauseAfterFailures))},
      ${instants(watches.map(({ failuresSince }) => failuresSince))},
      ${ints(watches.map(({ successWithinSeconds }) => successWithinSeconds))},
      ${instants(watches.map(({ successSince }) => successSince))}, ${instants(watches.map(({ lastSuccessAt }) => lastSuccessAt))},
      ${instants(watches.map(({ lookAt }) => lookAt))})
    ON CONFLICT (schedule_uid) DO UPDATE SET pause_after_failures = excluded.pause_after_failures,
      failures_since = excluded.failures_since, success_within_seconds = excluded.success_within_seconds,
      success_since = excluded.success_since, last_success_at = excluded.last_success_at, look_at = excluded.look_at`);
}

/** When each of these schedules last had a successful run; null: none since its time began to count. */
export async function lastSuccesses(
  db: Executor,
  watches: readonly OutcomeWatch[],
): Promise<Map<string, number | null>> {
  if (watches.length === 0) return new Map();
  const rows = await recordsOf<{ uid: string; at: Instant | null }>(db)(sql`-- lastSuccesses
    SELECT u.uid, (SELECT max(h.finished_at) FROM history h WHERE h.schedule_uid = u.uid AND h.outcome_watched
        AND h.status = 'succeeded' AND h.finished_at > u.since) AS at
    FROM unnest(${uuids(watches.map(({ scheduleUid }) => scheduleUid))},
      ${instants(watches.map(({ successSince }) => successSince))}) AS u(uid, since)`);
  return new Map(rows.map(({ uid, at }) => [uid, at]));
}

export async function deleteWatches(tx: Executor, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- deleteWatches
    DELETE FROM outcome_watches WHERE schedule_uid = ANY (${uuids(uids)})`);
}

/** `atMost`: that many in a row pause the schedule. */
export interface FailureCount {
  failures: number;
  atMost: number;
}

/**
 * Counts the runs of each schedule that did not succeed since it was enabled and since its last success, as far as they matter. The caller
 * has the schedules' row locks from an earlier statement. A success that is written only now does not wait for these: it comes after.
 */
export async function countFailuresInARow(
  tx: Transaction,
  uids: readonly string[],
): Promise<Map<string, FailureCount>> {
  const rows = await recordsOf<FailureCount & { uid: string }>(tx)(sql`-- countFailuresInARow
    SELECT w.schedule_uid AS uid, w.pause_after_failures AS at_most, (SELECT count(*) FROM (
        SELECT FROM history h WHERE h.schedule_uid = w.schedule_uid AND h.outcome_watched
          AND h.status IN ('failed', 'unknown', 'abandoned')
          AND h.finished_at > greatest(w.failures_since, (SELECT max(s.finished_at) FROM history s
            WHERE s.schedule_uid = w.schedule_uid AND s.outcome_watched AND s.status = 'succeeded'))
        LIMIT w.pause_after_failures) AS counted)::int AS failures
    FROM outcome_watches w JOIN schedules ON schedules.uid = w.schedule_uid
    WHERE w.schedule_uid = ANY (${uuids(uids)}) AND w.pause_after_failures IS NOT NULL AND schedules.enabled`);
  return new Map(rows.map(({ uid, ...count }) => [uid, count]));
}

export interface EndedPause {
  uid: string;
  scheduleId: string;
}

interface PauseEnds {
  /** Schedules whose pause is over, the first of them. */
  ended: EndedPause[];
  /** How long until the next pause ends; null: none will. */
  nextInMs: number | null;
}

/** Reads the first rows of an index that only contains pauses with an end. */
export async function findEndedPauses(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<PauseEnds> {
  const rows = await rowsOf<{ uid: string | null; id: string; next_in_ms: number | null }>(db)(sql`-- findEndedPauses
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ended.uid, ended.id, extract(epoch FROM (SELECT min(pause_until) FROM schedules
        WHERE pause_until IS NOT NULL AND pause_until > (SELECT now FROM clock) AND pause_until < 'infinity')
        - clock.now)::float8 * 1000 AS next_in_ms
    FROM clock LEFT JOIN (
      SELECT uid, id FROM schedules WHERE pause_until IS NOT NULL AND pause_until <= (SELECT now FROM clock)
        AND uid <> ALL (${uuids(besides)}) ORDER BY pause_until LIMIT ${limit}) AS ended ON true`);
  return {
    ended: rows.flatMap(({ uid, id }) => (uid === null ? [] : [{ uid, scheduleId: id }])),
    nextInMs: rows[0]?.next_in_ms ?? null,
  };
}

/** Locks those of them whose pause is over and that no other transaction has locked; answers their ids. */
export async function lockEndedPauses(tx: Transaction, ended: readonly EndedPause[]): Promise<string[]> {
  return onlyColumnOf<string>(tx)(sql`-- lockEndedPauses
    SELECT id FROM schedules WHERE uid = ANY (${uuids(ended.map(({ uid }) => uid))}) AND pause_until <= (SELECT clock_timestamp())
    ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
}

/** Says of paused schedules why they could not be enabled, where they are still of that version. */
export async function sayWhyStillPaused(
  db: Executor,
  paused: readonly { schedule: Pick<Schedule, 'uid' | 'version'>; error: string }[],
): Promise<void> {
  if (paused.length === 0) return;
  await db.execute(sql`-- sayWhyStillPaused
    UPDATE schedules s SET error = a.error
    FROM unnest(${uuids(paused.map(({ schedule }) => schedule.uid))}, ${ints(paused.map(({ schedule }) => schedule.version))},
      ${texts(paused.map(({ error }) => error))}) AS a(uid, version, error)
    WHERE s.uid = a.uid AND s.version = a.version AND NOT s.enabled AND s.error IS DISTINCT FROM a.error`);
}
