import { type SQL, sql } from 'drizzle-orm';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** As `after_uid`: the schedule follows every schedule that is not itself an `after` schedule. */
export const ALL_SCHEDULES = '00000000-0000-0000-0000-000000000000';

/** Whether a schedule with this `after_uid` follows the schedule of this uid: this one, or all of them. */
export function follows(afterUid: SQL, uid: SQL): SQL {
  return sql`${afterUid} = ANY (ARRAY[${uid}, ${ALL_SCHEDULES}::uuid])`;
}

/** Until the transaction ends, no other transaction edits which schedule follows which: two could close a cycle together. */
export async function lockFollowing(tx: Executor): Promise<void> {
  await tx.execute(sql`-- lockFollowing
    SELECT pg_advisory_xact_lock(${FOLLOWING_LOCK})`);
}

const FOLLOWING_LOCK = 0x66697265;

/** The uids of schedules, by id, kept from being deleted until the transaction ends. */
export async function keepFollowed(tx: Executor, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await rowsOf<{ uid: string; id: string }>(tx)(sql`-- keepFollowed
    SELECT uid, id FROM schedules WHERE id = ANY (${texts(ids)}) ORDER BY uid FOR KEY SHARE`);
  return new Map(rows.map(({ uid, id }) => [id, uid]));
}

/** The schedule that the one of this uid follows; null: it follows none, or is not there. */
export async function followedUid(tx: Executor, uid: string): Promise<string | null> {
  const [row] = await rowsOf<{ after_uid: string | null }>(tx)(sql`-- followedUid
    SELECT after_uid FROM schedules WHERE uid = ${uid}`);
  return row?.after_uid ?? null;
}

/** Ids of schedules that follow this one, by id; at most `limit`. */
export async function followersOf(tx: Executor, uid: string, limit: number): Promise<string[]> {
  const rows = await rowsOf<{ id: string }>(tx)(sql`-- followersOf
    SELECT id FROM schedules WHERE after_uid IS NOT NULL AND after_uid = ${uid} ORDER BY id LIMIT ${limit}`);
  return rows.map((row) => row.id);
}
