import { type SQL, sql } from 'drizzle-orm';
import { FIRST_UUID, bigints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { type Effect, deleteEffects, lockEffectsAgain, moveBehind } from './effect-rows.ts';
import { followedAs } from './followers.ts';

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
  const [first, later] = [aboutAll.filter(isFirst), aboutAll.filter((end) => !isFirst(end))];
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

function isFirst({ doneThrough }: Effect): boolean {
  return doneThrough === null;
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
    rowsOf<{ uid: string }>(tx)(sql`-- lockFollowers
      SELECT uid FROM schedules WHERE uid = ANY (${uuids(of)}) ${condition}`);
  const alone = await rowsWhere(sql`AND overlap <> 'allow' ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED`);
  const shared = await rowsWhere(sql`AND overlap = 'allow' ORDER BY uid FOR SHARE SKIP LOCKED`);
  const free = new Set([...alone, ...shared].map(({ uid }) => uid));
  const left = uids.filter((uid) => !free.has(uid));
  const locked = left.length === 0 ? [] : await rowsWhere(sql``, left);
  return { free, locked: new Set(locked.map(({ uid }) => uid)) };
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
