import { sql } from 'drizzle-orm';
import type { OutcomeWatch } from '../../../core/schedules/outcome-watch.ts';
import { instants, uuids } from '../../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstantOrNull } from '../../../postgres/sql/rows.ts';
import { type WatchRow, toWatch } from './outcome-watches.ts';
import { isOver } from '../search/status-conditions.ts';

/** A schedule that may have become late, or may no longer be late. */
export interface LateLook {
  watch: OutcomeWatch;
  scheduleId: string;
  version: number;
  /** It is paused, or nothing is left for it to fire: it is never late. */
  rests: boolean;
}

/** The uids of schedules that must be checked, the longest overdue first. */
export async function findLooks(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  const rows = await rowsOf<{ schedule_uid: string }>(db)(sql`-- findLooks
    SELECT schedule_uid FROM outcome_watches WHERE look_at IS NOT NULL AND look_at <= (SELECT clock_timestamp())
      AND schedule_uid <> ALL (${uuids(besides)}) ORDER BY look_at LIMIT ${limit}`);
  return rows.map((row) => row.schedule_uid);
}

/** Locks those that still must be checked; another instance may check the others, or an edit has them. */
export async function lockLooks(tx: Transaction, uids: readonly string[]): Promise<LateLook[]> {
  const rows = await rowsOf<WatchRow & { id: string; version: number; rests: boolean }>(tx)(sql`-- lockLooks
    SELECT w.*, schedules.id, schedules.version, NOT schedules.enabled OR ${isOver} AND schedules.error IS NULL AS rests
    FROM outcome_watches w JOIN schedules ON schedules.uid = w.schedule_uid
    WHERE w.schedule_uid = ANY (${uuids(uids)}) AND w.look_at <= (SELECT clock_timestamp())
    ORDER BY w.schedule_uid FOR UPDATE OF w SKIP LOCKED`);
  return rows.map((row) => ({
    watch: toWatch(row),
    scheduleId: row.id,
    version: row.version,
    rests: row.rests,
  }));
}

/** Those that are late must be checked again now. Answers the late ones whose rows other transactions have locked. */
export async function lookAgainAtLate(tx: Transaction, uids: readonly string[]): Promise<string[]> {
  if (uids.length === 0) return [];
  const late = sql`SELECT schedule_uid FROM outcome_watches WHERE schedule_uid = ANY (${uuids(uids)}) AND late_since IS NOT NULL`;
  const rows = await rowsOf<{ schedule_uid: string }>(tx)(sql`-- lookAgainAtLate
    WITH free AS MATERIALIZED (${late} ORDER BY schedule_uid FOR NO KEY UPDATE SKIP LOCKED), looked AS (
      UPDATE outcome_watches w SET look_at = least(w.look_at, clock_timestamp()) FROM free
      WHERE w.schedule_uid = free.schedule_uid
    )
    ${late} AND schedule_uid NOT IN (SELECT schedule_uid FROM free)`);
  return rows.map((row) => row.schedule_uid);
}

/** When each of these schedules last had a successful run; null: none since its time began to count. */
export async function lastSuccesses(
  db: Executor,
  watches: readonly OutcomeWatch[],
): Promise<Map<string, number | null>> {
  if (watches.length === 0) return new Map();
  const rows = await rowsOf<{ uid: string; at: InstantText | null }>(db)(sql`-- lastSuccesses
    SELECT u.uid, (SELECT max(h.finished_at) FROM history h WHERE h.schedule_uid = u.uid AND h.outcome_watched
        AND h.status = 'succeeded' AND h.finished_at > u.since) AS at
    FROM unnest(${uuids(watches.map(({ scheduleUid }) => scheduleUid))},
      ${instants(watches.map(({ successSince }) => successSince))}) AS u(uid, since)`);
  return new Map(rows.map(({ uid, at }) => [uid, toInstantOrNull(at)]));
}
