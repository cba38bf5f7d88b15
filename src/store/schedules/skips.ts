import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { instants, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';

/** Fires of one schedule that callers asked to skip, each with its reason. */
export type Skips = ReadonlyMap<Instant, string | null>;

/** By uid, up to and with an instant, if one is given. Only schedules that have some are in the answer. */
export async function skipsOf(
  db: Executor,
  uids: readonly string[],
  upTo?: Instant,
): Promise<Map<string, Skips>> {
  const found = new Map<string, Map<Instant, string | null>>();
  if (uids.length === 0) return found;
  const past = upTo === undefined ? sql`` : sql` AND fire_at <= ${isoInstant(upTo)}::timestamptz`;
  const rows = await rowsOf<{ uid: string; fire_at: InstantText; reason: string | null }>(db)(sql`-- skipsOf
    SELECT schedule_uid AS uid, fire_at, reason FROM skips WHERE schedule_uid = ANY (${uuids(uids)})${past}`);
  for (const { uid, fire_at, reason } of rows) {
    const ofSchedule = found.get(uid) ?? new Map<Instant, string | null>();
    found.set(uid, ofSchedule.set(toInstant(fire_at), reason));
  }
  return found;
}

interface AskedSkip {
  uid: string;
  fireAt: Instant;
  reason: string | null;
  by: string | null;
}

/** Under the schedule's row lock. Answers how many of its fires after `now` are skipped already, and whether this one is. */
export async function countSkips(
  tx: Transaction,
  { uid, fireAt }: Pick<AskedSkip, 'uid' | 'fireAt'>,
  now: Instant,
): Promise<{ toCome: number; isSkipped: boolean }> {
  const [row] = await rowsOf<{ to_come: number; is_skipped: boolean }>(tx)(sql`-- countSkips
    SELECT count(*) FILTER (WHERE fire_at > ${isoInstant(now)}::timestamptz)::int AS to_come,
      count(*) FILTER (WHERE fire_at = ${isoInstant(fireAt)}::timestamptz) > 0 AS is_skipped
    FROM skips WHERE schedule_uid = ${uid}`);
  return { toCome: row?.to_come ?? 0, isSkipped: row?.is_skipped ?? false };
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
export async function deleteSkips(
  tx: Transaction,
  skips: readonly Pick<AskedSkip, 'uid' | 'fireAt'>[],
): Promise<void> {
  await tx.execute(sql`-- deleteSkips
    DELETE FROM skips k USING unnest(${uuids(skips.map(({ uid }) => uid))}, ${instants(skips.map(({ fireAt }) => fireAt))})
      AS d(uid, fire_at) WHERE k.schedule_uid = d.uid AND k.fire_at = d.fire_at`);
  await noteSkipsUnderLock(tx, [...new Set(skips.map(({ uid }) => uid))]);
}

/** Under the schedules' row locks: forgets what lies before the next occurrence, and so is planned. */
export async function deletePlannedSkips(tx: Transaction, uids: readonly string[]): Promise<void> {
  if (uids.length === 0) return;
  await tx.execute(sql`-- deletePlannedSkips
    DELETE FROM skips k USING schedules s WHERE k.schedule_uid = ANY (${uuids(uids)}) AND s.uid = k.schedule_uid
      AND (s.next_occurrence_at IS NULL OR k.fire_at < s.next_occurrence_at)`);
  await noteSkipsUnderLock(tx, uids);
}

/** All skips of a schedule that is deleted. */
export async function deleteAllSkips(tx: Transaction, uid: string): Promise<void> {
  await tx.execute(sql`-- deleteAllSkips
    DELETE FROM skips WHERE schedule_uid = ${uid}`);
}

/** A statement after the one that took the row locks: it sees every skip that was committed before. */
async function noteSkipsUnderLock(tx: Transaction, uids: readonly string[]): Promise<void> {
  await tx.execute(sql`-- noteSkipsUnderLock
    UPDATE schedules s SET has_skips = NOT has_skips WHERE uid = ANY (${uuids(uids)})
      AND has_skips <> EXISTS (SELECT FROM skips k WHERE k.schedule_uid = s.uid)`);
}

async function clearFireLock(tx: Transaction, uid: string): Promise<void> {
  await tx.execute(sql`-- clearFireLock
    UPDATE schedules SET locked_by = NULL, locked_at = NULL WHERE uid = ${uid}`);
}
