import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { bigints, FIRST_UUID, texts, uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import { namesSeen } from '../scopes/in-scope.ts';
import { type Effect, deleteEffects, lockEffectsAgain, moveBehind } from './effect-rows.ts';

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
function followedAs({ uid, id }: Followed): SQL {
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
export async function followedFrom(tx: Executor, uids: readonly string[]): Promise<Map<string, string | null>> {
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

/** One follower of one end. */
export interface FollowerPair {
  end: Effect;
  followerUid: string;
}

/**
 * Followers that one transaction sees to: each may be a run that it records, and a row that it locks. Of ends that come up for the first
 * time; of each of these; and of ends that were begun, which go on at a pace that leaves time for others.
 */
const MAX_FIRST_PAIRS = 2_000;
const MAX_FIRST_PAIRS_OF_END = 100;
const MAX_BEGUN_PAIRS = 250;

/**
 * The next followers of these ends, in the order of uids. Each end gets the same share, so that one with few followers is done at once,
 * however many follow the others. `begun`: ends that have used up their share, and may have more.
 */
export async function nextPairs(
  tx: Transaction,
  ends: readonly Effect[],
): Promise<{ pairs: FollowerPair[]; begun: Effect[] }> {
  const pairs: FollowerPair[] = [];
  const begun: Effect[] = [];
  const aboutAll: Effect[] = [];
  for (const end of ends) {
    if (end.followerUid === null) aboutAll.push(end);
    else pairs.push({ end, followerUid: end.followerUid });
  }
  const first = aboutAll.filter(({ doneThrough }) => doneThrough === null);
  const later = aboutAll.filter(({ doneThrough }) => doneThrough !== null);
  for (const [of, share] of [
    [first, Math.min(MAX_FIRST_PAIRS_OF_END, shareOf(MAX_FIRST_PAIRS, first))],
    [later, shareOf(MAX_BEGUN_PAIRS, later)],
  ] as const) {
    const followers = await followersOfEnds(tx, of, share);
    for (const end of of) {
      const uids = followers.get(end.id) ?? [];
      for (const followerUid of uids) pairs.push({ end, followerUid });
      const last = uids.at(-1);
      if (last !== undefined && uids.length >= share) begun.push({ ...end, doneThrough: last });
    }
  }
  return { pairs, begun };
}

function shareOf(pairs: number, ends: readonly Effect[]): number {
  return Math.ceil(pairs / Math.max(1, ends.length));
}

/** At most `share` of each, behind the one that the effect is done through. A schedule that follows many follows no follower. */
async function followersOfEnds(
  tx: Transaction,
  ends: readonly Effect[],
  share: number,
): Promise<Map<number, string[]>> {
  if (ends.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; uid: string }>(tx)(sql`-- followersOfEnds
    SELECT e.id, next.uid
    FROM unnest(${bigints(ends.map(({ id }) => id))}, ${uuids(ends.map(({ scheduleUid }) => scheduleUid))},
      ${texts(ends.map(({ scheduleId }) => scheduleId ?? ''))}, ${uuids(ends.map(({ doneThrough }) => doneThrough ?? FIRST_UUID))})
      AS e(id, schedule_uid, schedule_id, done_through), LATERAL (
      SELECT followers.uid FROM (${followedAs({ uid: sql`e.schedule_uid`, id: sql`e.schedule_id` })}) AS followed(uid),
        LATERAL ${followersBehind(sql`followed.uid`, share)}
      WHERE followed.uid = e.schedule_uid
        OR NOT EXISTS (SELECT FROM schedules parent WHERE parent.uid = e.schedule_uid AND parent.after_uid IS NOT NULL)
      ORDER BY followers.uid LIMIT ${share}) AS next
    ORDER BY e.id, next.uid`);
  const byEnd = Map.groupBy(rows, ({ id }) => Number(id));
  return new Map([...byEnd].map(([id, found]) => [id, found.map(({ uid }) => uid)]));
}

/**
 * Steps through the index of followers. With a plain `after_uid =`, the planner may take them for few where it has no statistics, and
 * read all of them for each part.
 */
function followersBehind(followed: SQL, share: number): SQL {
  return sql`(SELECT uid FROM (
      SELECT after_uid, uid FROM schedules WHERE after_uid IS NOT NULL AND (after_uid, uid) > (${followed}, e.done_through)
      ORDER BY after_uid, uid LIMIT ${share}) AS behind WHERE behind.after_uid = ${followed}) AS followers`;
}

/**
 * Locks these followers; answers which are free, and which another transaction has locked. A follower that must not overlap is locked
 * alone, since its runs are judged under that lock; the others are shared, so that the ends of many runs do not wait for each other.
 */
export async function lockFollowers(
  tx: Transaction,
  pairs: readonly FollowerPair[],
): Promise<{ free: ReadonlySet<string>; locked: ReadonlySet<string> }> {
  const uids = [...new Set(pairs.map(({ followerUid }) => followerUid))];
  const rowsWhere = (condition = sql``, of: readonly string[] = uids) =>
    onlyColumnOf<string>(tx)(sql`-- lockFollowers
      SELECT uid FROM schedules WHERE uid = ANY (${uuids(of)}) ${condition}`);
  const alone = await rowsWhere(sql`AND overlap <> 'allow' ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
  const shared = await rowsWhere(sql`AND overlap = 'allow' ORDER BY uid FOR SHARE SKIP LOCKED`);
  const free = new Set([...alone, ...shared]);
  const left = uids.filter((uid) => !free.has(uid));
  const locked = left.length === 0 ? [] : await rowsWhere(sql``, left);
  return { free, locked: new Set(locked) };
}

/** Writes an effect for each of these pairs whose own effect is about all followers. Answers how many it wrote. */
export async function writePairEffects(tx: Transaction, pairs: readonly FollowerPair[]): Promise<number> {
  const apart = pairs.filter(({ end }) => end.followerUid === null);
  if (apart.length === 0) return 0;
  const rows = await rowsOf(tx)(sql`-- writePairEffects
    INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt,
      follower_uid, created_at)
    SELECT e.kind, e.run_id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, e.status, e.finished_at, e.attempt,
      pair.uid, e.created_at
    FROM unnest(${bigints(apart.map(({ end }) => end.id))}, ${uuids(apart.map(({ followerUid }) => followerUid))})
      AS pair(id, uid) JOIN effects e ON e.id = pair.id
    RETURNING id`);
  return rows.length;
}

/**
 * Replaces the next part of an effect about all that follow by one effect for each of them, so that one which cannot be done is put off
 * alone.
 */
export async function splitByFollower(tx: Transaction, effect: Effect): Promise<void> {
  const stillThere = await lockEffectsAgain(tx, [effect.id]);
  if (stillThere.length === 0) return;
  const { pairs, begun } = await nextPairs(tx, stillThere);
  await writePairEffects(tx, pairs);
  await moveBehind(tx, begun);
  if (begun.length === 0) await deleteEffects(tx, [effect.id]);
}
