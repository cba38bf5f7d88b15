import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Executor } from '../../postgres/executor.ts';
import { texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { namesSeen } from '../scopes/in-scope.ts';

/** As `after_uid`: the schedule follows every schedule that is not itself an `after` schedule. */
const ALL_SCHEDULES = '00000000-0000-0000-0000-000000000000';
/** The uids of schedules begin with the time of their creation (UUIDv7), and are higher. */
const FIRST_OF_ONE = '01000000-0000-0000-0000-000000000000';

/**
 * As `after_uid`: the schedule follows all whose ids begin so and that are not themselves `after` schedules. It is below the uids of
 * schedules, and a hash of the prefix: so an end finds these followers in the same index, by the prefixes of its schedule's id.
 */
export function uidOfPrefix(prefix: string): string {
  if (prefix === '') return ALL_SCHEDULES;
  const hash = `00${createHash('sha256').update(prefix).digest('hex').slice(0, 30)}`;
  return hash.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Whether this `after_uid` is not that of one schedule. */
export function isOfPrefix(afterUid: string): boolean {
  return afterUid < FIRST_OF_ONE;
}

/** The same, in SQL. */
export function isUidOfPrefix(afterUid: SQL): SQL {
  return sql`${afterUid} < ${FIRST_OF_ONE}::uuid`;
}

interface Followed {
  uid: SQL;
  id: SQL;
}

/** Whether a schedule with this `after_uid` follows the schedule of this uid and id: this one, or those of a prefix of its id. */
export function follows(afterUid: SQL, { uid, id }: Followed): SQL {
  return sql`(${afterUid} = ANY (ARRAY[${uid}, ${ALL_SCHEDULES}::uuid]) OR ${afterUid} = ANY (ARRAY(${uidsOfPrefixes(id)})))`;
}

/**
 * Whether some schedule follows it. It steps to each place of the index: without statistics the planner may take followers for many, and
 * read all schedules to find none.
 */
export function isFollowed(followed: Followed): SQL {
  return sql`EXISTS (SELECT FROM (${followedAs(followed)}) AS wanted(uid), LATERAL (
      SELECT after_uid FROM schedules WHERE after_uid IS NOT NULL AND after_uid >= wanted.uid ORDER BY after_uid LIMIT 1) AS found
    WHERE found.after_uid = wanted.uid)`;
}

/** Each `after_uid` of schedules that follow it. Where no schedule follows a prefix, none of a prefix is computed. */
export function followedAs({ uid, id }: Followed): SQL {
  return sql`SELECT ${uid} AS uid UNION ALL SELECT ${ALL_SCHEDULES}::uuid
    UNION ALL ${uidsOfPrefixes(id)} WHERE (${ANY_OF_PREFIX})`;
}

/** As uidOfPrefix, of each beginning of this id. */
function uidsOfPrefixes(id: SQL): SQL {
  return sql`SELECT ('00' || left(encode(sha256(convert_to(left(${id}, n), 'UTF8')), 'hex'), 30))::uuid
    FROM generate_series(1, length(${id})) AS n`;
}

const ANY_OF_PREFIX = sql`SELECT true FROM schedules
  WHERE after_uid IS NOT NULL AND after_uid > ${ALL_SCHEDULES}::uuid AND ${isUidOfPrefix(sql`after_uid`)}
  ORDER BY after_uid LIMIT 1`;

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

/** What these schedules follow, and what those follow, and so on, by uid; null: it follows none. */
export async function followedFrom(
  tx: Executor,
  uids: readonly string[],
): Promise<Map<string, string | null>> {
  if (uids.length === 0) return new Map();
  const rows = await rowsOf<{ uid: string; after_uid: string | null }>(tx)(sql`-- followedFrom
    WITH RECURSIVE above AS (
      SELECT uid, after_uid FROM schedules WHERE uid = ANY (${uuids(uids)})
      UNION SELECT s.uid, s.after_uid FROM above a JOIN schedules s ON s.uid = a.after_uid
    ) SELECT uid, after_uid FROM above`);
  return new Map(rows.map((row) => [row.uid, row.after_uid]));
}

/** Ids of schedules that follow this one, by id: at most `limit` that a caller of this scope may read. */
export async function followersOf(
  tx: Executor,
  uid: string,
  { scope, limit }: { scope: Scope; limit: number },
): Promise<string[]> {
  const seen = sql.join([sql``, ...namesSeen(sql`id`, scope)], sql` AND `);
  return onlyColumnOf<string>(tx)(sql`-- followersOf
    SELECT id FROM schedules WHERE after_uid IS NOT NULL AND after_uid = ${uid}${seen} ORDER BY id LIMIT ${limit}`);
}

/** Whether some schedule follows it that a caller of this scope may not read. */
export async function isFollowedByUnseen(tx: Executor, uid: string, scope: Scope): Promise<boolean> {
  const [seen] = namesSeen(sql`id`, scope);
  if (!seen) return false;
  const rows = await rowsOf(tx)(sql`-- isFollowedByUnseen
    SELECT 1 FROM schedules WHERE after_uid IS NOT NULL AND after_uid = ${uid} AND NOT ${seen} LIMIT 1`);
  return rows.length > 0;
}
