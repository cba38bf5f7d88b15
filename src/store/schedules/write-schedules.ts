import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { type Instant, isoOrNull } from '../../core/instant.ts';
import { isOutcomeWatched } from '../../core/schedules/outcome-watch.ts';
import { type Definition, type Schedule, PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { booleans, doubles, instants, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { isHeartbeat } from '../../core/timing/timing.ts';
import { timingText } from '../../core/schedules/stored-definition.ts';
import { deletePingKeys } from '../runs/observed.ts';
import { abandonOpenRuns } from '../runs/ends/abandon-runs.ts';
import { deleteWatches } from './watches.ts';

type Planning = 'nextOccurrenceAt' | 'nextFireAt' | 'lastFireAt' | 'plannedThrough';
type Identity = 'uid' | 'id' | 'version' | 'createdAt';

/** A schedule as it will be after this write; the stored `plannedThrough` only rises. */
export interface ScheduleWrite extends Pick<Schedule, Identity | Planning | 'definition' | 'lane' | 'afterUid'> {
  /** When it takes effect; absent: now. */
  at?: Instant;
  /** The name of the caller; null: it has none. */
  by: string | null;
}

/** The name of the NOTIFY that makes instances look at schedules again: a hint, never needed. */
export const SCHEDULES_CHANGED = 'firelock_schedules';

/**
 * Writes schedules, new or under the caller's row locks, each with its version; every write clears the fire-lock.
 * A new id that another caller took meanwhile fails on the unique index (23505).
 */
export async function writeSchedules(tx: Executor, writes: readonly ScheduleWrite[], now: Instant): Promise<void> {
  if (writes.length === 0) return;
  for (const some of inPortions(writes)) {
    await upsertSchedules(tx, some, now);
    await insertVersions(tx, some, now);
  }
  await tx.execute(sql`-- writeSchedules
    SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
}

/** Deletes the schedule's row; what is open of its runs is abandoned, or is from now on (`isMore`); its versions and runs stay readable. */
export async function deleteScheduleAndAbandon(
  tx: Transaction,
  last: ScheduleWrite,
  now: Instant,
): Promise<{ abandoned: number; isMore: boolean; effects: number }> {
  // First, since of a schedule that goes nothing is to follow from its failures.
  await deleteWatches(tx, isOutcomeWatched(last.definition) ? [last.uid] : []);
  if (last.definition.observe !== null) await deletePingKeys(tx, [last.uid]);
  const abandoned = await abandonOpenRuns(tx, last);
  await insertVersions(tx, [{ ...versioned({ ...last, at: now }), change: 'deleted' }], now);
  await tx.execute(sql`-- deleteScheduleAndAbandon
    DELETE FROM schedules WHERE uid = ${last.uid}`);
  return abandoned;
}

/** After fires were recorded that the cursors had passed already. */
export async function raisePlannedUnderLock(
  tx: Transaction,
  writes: readonly Pick<ScheduleWrite, 'uid' | 'plannedThrough' | 'lastFireAt'>[],
): Promise<void> {
  await tx.execute(sql`-- raisePlannedUnderLock
    UPDATE schedules s SET planned_through = greatest(s.planned_through, w.planned), last_fire_at = greatest(s.last_fire_at, w.fired)
    FROM unnest(${uuids(writes.map(({ uid }) => uid))}, ${instants(writes.map(({ plannedThrough }) => plannedThrough))},
      ${instants(writes.map(({ lastFireAt }) => lastFireAt))}) AS w(uid, planned, fired) WHERE s.uid = w.uid`);
}

interface VersionedWrite extends ScheduleWrite {
  /** The content of its version, as JSON, without the payload. */
  said: string;
  change: 'created' | 'updated' | 'deleted';
  edition: string;
}

function versioned(write: ScheduleWrite): VersionedWrite {
  const said = JSON.stringify({ ...write.definition, payload: undefined });
  return { ...write, said, change: write.version === 1 ? 'created' : 'updated', edition: randomUUID() };
}

/**
 * Few statements, since each is planned anew. But building one with a thousand payloads blocks the process.
 */
function* inPortions(writes: readonly ScheduleWrite[]): Generator<VersionedWrite[], void, void> {
  let portion: VersionedWrite[] = [];
  let length = 0;
  for (const write of writes) {
    const one = versioned(write);
    portion.push(one);
    length += one.said.length + (write.definition.payload?.length ?? 0);
    if (portion.length < MAX_AT_ONCE && length < MAX_LENGTH_AT_ONCE) continue;
    yield portion;
    [portion, length] = [[], 0];
  }
  if (portion.length > 0) yield portion;
}

const MAX_AT_ONCE = 250;
/** In characters: what is around definitions and payloads is little beside them. */
const MAX_LENGTH_AT_ONCE = 512 * 1024;

/**
 * An edit replaces everything but identity and birth. The parameters are arrays by column: with one parameter per value, building
 * the statement took most of an import's time.
 */
// oxlint-disable-next-line max-lines-per-function -- one statement
async function upsertSchedules(tx: Executor, writes: readonly VersionedWrite[], now: Instant): Promise<void> {
  const definitions = writes.map((write) => write.definition);
  const followers = writes.map(({ afterUid, definition }) => (afterUid === null ? null : definition));
  await tx.execute(sql`-- writeSchedules
    INSERT INTO schedules (uid, id, version, enabled, pause_until, outcome_watched, timing, zoned, overlap, lane, priority, limit_id,
      planned_through, next_occurrence_at, next_fire_at, last_fire_at, created_at, after_uid, after_on, after_start_at, after_end_at,
      after_jitter_seconds, start_within_seconds, finish_within_seconds, expires_after_seconds, report_seconds, observe_until, heartbeat,
      updated_at, edition)
    SELECT w.uid, w.id, w.version, w.enabled, w.pause_until, w.outcome_watched, w.timing, w.zoned, w.overlap, w.lane, w.priority, w.limit_id,
      w.planned_through, w.next_occurrence_at, w.next_fire_at, w.last_fire_at, w.created_at, w.after_uid, string_to_array(w.after_on, ','),
      w.after_start_at, w.after_end_at, w.after_jitter_seconds, w.start_within_seconds, w.finish_within_seconds,
      w.expires_after_seconds, w.report_seconds, w.observe_until, w.heartbeat, w.at, w.edition
    FROM unnest(
      ${uuids(writes.map((write) => write.uid))}, ${texts(writes.map((write) => write.id))},
      ${ints(writes.map((write) => write.version))}, ${booleans(definitions.map(({ enabled }) => enabled))},
      ${instants(definitions.map(({ pauseUntil }) => pauseUntil))}, ${booleans(definitions.map(isOutcomeWatched))},
      ${instants(writes.map(({ at }) => at ?? now))},
      ${texts(definitions.map(timingText))}, ${booleans(definitions.map(isZoned))}, ${texts(definitions.map(({ overlap }) => overlap))},
      ${texts(writes.map((write) => write.lane))}, ${ints(definitions.map(({ priority }) => PRIORITY_RANK[priority]))},
      ${texts(definitions.map(({ limit }) => limit))},
      ${instants(writes.map((write) => write.plannedThrough))}, ${instants(writes.map((write) => write.nextOccurrenceAt))},
      ${instants(writes.map((write) => write.nextFireAt))},
      ${instants(writes.map((write) => write.lastFireAt))}, ${instants(writes.map((write) => write.createdAt))},
      ${uuids(writes.map((write) => write.afterUid))},
      ${texts(followers.map((follower) => follower?.after?.on.join(',') ?? null))},
      ${instants(followers.map((follower) => follower?.startAt ?? null))},
      ${instants(followers.map((follower) => follower?.endAt ?? null))},
      ${ints(followers.map((follower) => follower?.jitterSeconds ?? null))},
      ${ints(definitions.map(({ expect }) => expect?.startWithinSeconds ?? null))},
      ${ints(definitions.map(({ expect }) => expect?.finishWithinSeconds ?? null))},
      ${ints(definitions.map(({ expiresAfterSeconds }) => expiresAfterSeconds))},
      ${doubles(definitions.map(({ observe, completionTimeoutSeconds }) => observe && completionTimeoutSeconds))},
      ${instants(definitions.map(({ observe }) => observe?.until ?? null))}, ${booleans(definitions.map(isHeartbeat))},
      ${uuids(writes.map((write) => write.edition))})
      AS w(uid, id, version, enabled, pause_until, outcome_watched, at, timing, zoned, overlap, lane, priority, limit_id,
        planned_through, next_occurrence_at, next_fire_at,
        last_fire_at, created_at, after_uid, after_on, after_start_at, after_end_at, after_jitter_seconds, start_within_seconds,
        finish_within_seconds, expires_after_seconds, report_seconds, observe_until, heartbeat, edition)
    ON CONFLICT (uid) DO UPDATE SET version = excluded.version, enabled = excluded.enabled,
      pause_until = excluded.pause_until, outcome_watched = excluded.outcome_watched, timing = excluded.timing,
      zoned = excluded.zoned, planned_through = greatest(schedules.planned_through, excluded.planned_through),
      overlap = excluded.overlap, lane = excluded.lane, priority = excluded.priority, limit_id = excluded.limit_id,
      next_occurrence_at = excluded.next_occurrence_at, next_fire_at = excluded.next_fire_at,
      last_fire_at = excluded.last_fire_at, after_uid = excluded.after_uid, after_on = excluded.after_on,
      after_start_at = excluded.after_start_at, after_end_at = excluded.after_end_at,
      after_jitter_seconds = excluded.after_jitter_seconds, start_within_seconds = excluded.start_within_seconds,
      finish_within_seconds = excluded.finish_within_seconds,
      expires_after_seconds = excluded.expires_after_seconds, report_seconds = excluded.report_seconds,
      observe_until = excluded.observe_until, heartbeat = excluded.heartbeat, locked_by = NULL, locked_at = NULL, error = NULL,
      plan_failures = 0, updated_at = excluded.updated_at, edition = excluded.edition`);
}

async function insertVersions(tx: Executor, writes: readonly VersionedWrite[], now: Instant): Promise<void> {
  await tx.execute(sql`-- writeSchedules
    INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, by, definition, payload, edition)
    SELECT w.uid, w.version, w.id, w.change, w.at, w.by, w.definition::jsonb, w.payload, w.edition
    FROM unnest(${uuids(writes.map((write) => write.uid))}, ${ints(writes.map((write) => write.version))},
      ${texts(writes.map((write) => write.id))}, ${texts(writes.map(({ change }) => change))}, ${instants(writes.map(({ at }) => at ?? now))}, ${texts(writes.map((write) => write.by))},
      ${texts(writes.map((write) => write.said))}, ${texts(writes.map((write) => write.definition.payload))},
      ${uuids(writes.map((write) => write.edition))})
      AS w(uid, version, id, change, at, by, definition, payload, edition)`);
}

/** Zone data decides when it fires: a cron, or excluded days, in a zone other than UTC. */
function isZoned({ cron, exclude, timezone }: Definition): boolean {
  return (cron !== null || exclude !== null) && timezone !== null && timezone.toUpperCase() !== 'UTC';
}

/**
 * Has planning go on elsewhere, after fires were recorded under the schedule's row lock. It takes the fire-lock away: the guard of a plan
 * that is under way refuses it.
 */
export async function moveOnUnderLock(
  tx: Transaction,
  write: Pick<ScheduleWrite, 'uid' | 'nextOccurrenceAt' | 'nextFireAt' | 'plannedThrough' | 'lastFireAt'>,
): Promise<void> {
  const at = (moment: number | null) => sql`${isoOrNull(moment)}::timestamptz`;
  await tx.execute(sql`-- moveOnUnderLock
    UPDATE schedules SET next_occurrence_at = ${at(write.nextOccurrenceAt)}, next_fire_at = ${at(write.nextFireAt)},
      planned_through = greatest(planned_through, ${at(write.plannedThrough)}), last_fire_at = greatest(last_fire_at, ${at(write.lastFireAt)}),
      locked_by = NULL, locked_at = NULL, error = NULL, plan_failures = 0
    WHERE uid = ${write.uid}`);
}

/** Instances that start together apply their file one after the other: until the transaction ends, the others wait. */
export async function lockSchedulesFile(tx: Executor): Promise<void> {
  await tx.execute(sql`-- lockSchedulesFile
    SELECT pg_advisory_xact_lock(hashtext('firelock schedules file ' || current_schema()))`);
}

/** Fails if the transaction, and so the lock, is gone; and keeps the server from ending an idle transaction. */
export async function keepSchedulesFileLock(tx: Executor): Promise<void> {
  await tx.execute(sql`-- keepSchedulesFileLock
    SELECT 1`);
}
