import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { MAX_SKIPS, type SkippedFire } from '../../core/time/skipped-fires.ts';
import { instants, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/** Fires of one schedule that are not to be made. */
export type Skips = ReadonlyMap<Instant, SkippedFire>;

/** By uid, up to and with an instant, if one is given. Only schedules that have some are in the answer. */
export async function skipsOf(db: Executor, uids: readonly string[], upTo?: Instant): Promise<Map<string, Skips>> {
  if (uids.length === 0) return new Map();
  const past = upTo === undefined ? sql`` : sql` AND fire_at <= ${isoInstant(upTo)}::timestamptz`;
  const rows = await rowsOf<SkipRow>(db)(sql`-- skipsOf
    SELECT schedule_uid AS uid, fire_at, reason, made FROM skips WHERE schedule_uid = ANY (${uuids(uids)})${past}`);
  return byUid(rows);
}

/** The first ones of each: callers ask for fewer, but very many may have been made ahead of their moment. */
export async function firstSkipsOf(db: Executor, uids: readonly string[]): Promise<Map<string, Skips>> {
  if (uids.length === 0) return new Map();
  const rows = await rowsOf<SkipRow>(db)(sql`-- firstSkipsOf
    SELECT u.uid, k.fire_at, k.reason, k.made FROM unnest(${uuids(uids)}) AS u(uid), LATERAL (
      SELECT fire_at, reason, made FROM skips WHERE schedule_uid = u.uid ORDER BY fire_at LIMIT ${2 * MAX_SKIPS}) AS k`);
  return byUid(rows);
}

interface SkipRow {
  uid: string;
  fire_at: InstantText;
  reason: string | null;
  made: boolean;
}

function byUid(rows: readonly SkipRow[]): Map<string, Skips> {
  const found = new Map<string, Map<Instant, SkippedFire>>();
  for (const { uid, fire_at, reason, made } of rows) {
    const ofSchedule = found.get(uid) ?? new Map<Instant, SkippedFire>();
    found.set(uid, ofSchedule.set(toInstant(fire_at), { reason, made }));
  }
  return found;
}

interface AskedSkip {
  uid: string;
  fireAt: Instant;
  reason: string | null;
  by: string | null;
}

/** Under the schedule's row lock. Answers how many of its fires after `now` are skipped already, and whether this one is, or was made. */
export async function countSkips(
  tx: Transaction,
  { uid, fireAt }: Pick<AskedSkip, 'uid' | 'fireAt'>,
  now: Instant,
): Promise<{ toCome: number; isSkipped: boolean; isMade: boolean }> {
  const [row] = await rowsOf<{ to_come: number; is_skipped: boolean; is_made: boolean | null }>(tx)(sql`-- countSkips
    SELECT count(*) FILTER (WHERE fire_at > ${isoInstant(now)}::timestamptz AND NOT made)::int AS to_come,
      count(*) FILTER (WHERE fire_at = ${isoInstant(fireAt)}::timestamptz) > 0 AS is_skipped,
      bool_or(made) FILTER (WHERE fire_at = ${isoInstant(fireAt)}::timestamptz) AS is_made
    FROM skips WHERE schedule_uid = ${uid}`);
  const isMade = row?.is_made ?? false;
  return { toCome: row?.to_come ?? 0, isSkipped: row?.is_skipped ?? false, isMade };
}

/**
 * Under the schedule's row lock. It clears the fire-lock: what another instance has planned without knowing of this is not written, and
 * planned again.
 */
export async function insertSkipUnderLock(
  tx: Transaction,
  { uid, fireAt, reason, by }: AskedSkip,
  now: Instant,
): Promise<void> {
  await tx.execute(sql`-- insertSkipUnderLock
    INSERT INTO skips (schedule_uid, fire_at, reason, by, asked_at)
    VALUES (${uid}, ${isoInstant(fireAt)}::timestamptz, ${reason}, ${by}, ${isoInstant(now)}::timestamptz)`);
  await clearFireLock(tx, uid);
  await noteSkipsUnderLock(tx, [uid]);
}

/** As above. */
export async function deleteSkipUnderLock(
  tx: Transaction,
  { uid, fireAt }: Pick<AskedSkip, 'uid' | 'fireAt'>,
): Promise<void> {
  await deleteSkips(tx, [{ uid, fireAt }]);
  await clearFireLock(tx, uid);
}

/** Under the schedules' row locks. */
export async function deleteSkips(tx: Transaction, skips: readonly Pick<AskedSkip, 'uid' | 'fireAt'>[]): Promise<void> {
  await tx.execute(sql`-- deleteSkips
    DELETE FROM skips k USING unnest(${uuids(skips.map(({ uid }) => uid))}, ${instants(skips.map(({ fireAt }) => fireAt))})
      AS d(uid, fire_at) WHERE k.schedule_uid = d.uid AND k.fire_at = d.fire_at`);
  await noteSkipsUnderLock(tx, [...new Set(skips.map(({ uid }) => uid))]);
}

/** Under the schedules' row locks: forgets what was planned: it lies before the next occurrence, or was made and the cursor is past it. */
export async function deletePlannedSkips(tx: Transaction, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- deletePlannedSkips
    DELETE FROM skips k USING schedules s WHERE k.schedule_uid = ANY (${uuids(uids)}) AND s.uid = k.schedule_uid
      AND CASE WHEN k.made THEN k.fire_at <= s.planned_through
        ELSE s.next_occurrence_at IS NULL OR k.fire_at < s.next_occurrence_at END`);
  await noteSkipsUnderLock(tx, uids);
}

/** All skips of a schedule that is deleted. */
export async function deleteAllSkips(tx: Transaction, uid: string): Promise<void> {
  await tx.execute(sql`-- deleteAllSkips
    DELETE FROM skips WHERE schedule_uid = ${uid}`);
}

/** A statement after the one that took the row locks: it sees every skip that was committed before. */
export async function noteSkipsUnderLock(tx: Transaction, uids: readonly string[]): Promise<void> {
  await tx.execute(sql`-- noteSkipsUnderLock
    UPDATE schedules s SET has_skips = NOT has_skips WHERE uid = ANY (${uuids(uids)})
      AND has_skips <> EXISTS (SELECT FROM skips k WHERE k.schedule_uid = s.uid)`);
}

async function clearFireLock(tx: Transaction, uid: string): Promise<void> {
  await tx.execute(sql`-- clearFireLock
    UPDATE schedules SET locked_by = NULL, locked_at = NULL WHERE uid = ${uid}`);
}
