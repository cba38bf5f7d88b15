import { type SQL, eq, sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../core/instant.ts';
import { type Definition, PRIORITY_RANK } from '../core/schedule.ts';
import { booleans, instants, ints, texts, uuids } from './arrays.ts';
import type { Executor } from './executor.ts';
import { scheduleVersions, schedules } from './schema.ts';
import { rowsOf } from './rows.ts';

/** A schedule as it is to stand after this write. */
export interface ScheduleWrite {
  uid: string;
  id: string;
  version: number;
  definition: Definition;
  lane: string;
  nextOccurrenceAt: Instant | null;
  lastFireAt: Instant | null;
  createdAt: Instant;
}

/** The name of the NOTIFY that tells instances to look at schedules again: a hint, never needed. */
export const SCHEDULES_CHANGED = 'firelock_schedules';

/**
 * Writes schedules, new or under the caller's row locks, each with its version; every write clears the fire-lock.
 * A new id that somebody else took meanwhile fails on the unique index (23505).
 */
export async function writeSchedules(
  tx: Executor,
  writes: readonly ScheduleWrite[],
  now: Instant,
): Promise<void> {
  if (writes.length === 0) return;
  await tx.execute(upsertSchedules(writes, now));
  await tx.execute(insertVersions(writes, now));
  await tx.execute(sql`SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
}

/**
 * Deletes the schedule's row; what is open of its runs is abandoned, its versions and runs stay readable. Answers how many
 * runs were abandoned.
 */
export async function deleteScheduleAndAbandon(
  tx: Executor,
  last: ScheduleWrite,
  now: Instant,
): Promise<number> {
  const whose = sql`SELECT scheduled_for, id FROM runs WHERE schedule_uid = ${last.uid} AND status = 'pending'`;
  const at = sql`${isoInstant(now)}::timestamptz`;
  // Each half has its index; one snapshot for both, since a run goes from one half to the other at any time.
  const abandoned = await rowsOf(
    tx,
    sql`WITH open AS MATERIALIZED (${whose} AND claimed_by IS NULL UNION ALL ${whose} AND claimed_by IS NOT NULL)
    UPDATE runs r SET status = 'abandoned', reason = 'deleted', finished_at = ${at}, updated_at = ${at} FROM open
    WHERE r.scheduled_for = open.scheduled_for AND r.id = open.id AND CASE WHEN r.status = 'pending' THEN true END
    RETURNING r.id`,
  );
  await tx.insert(scheduleVersions).values({ ...versionRow(last, now), change: 'deleted' });
  await tx.delete(schedules).where(eq(schedules.uid, last.uid));
  return abandoned.length;
}

/** An edit replaces everything but identity and birth. By columns: with one parameter per value, building the statement was most of an import. */
function upsertSchedules(writes: readonly ScheduleWrite[], now: Instant): SQL {
  const nexts = instants(writes.map((write) => write.nextOccurrenceAt));
  return sql`INSERT INTO schedules (uid, id, version, enabled, cron, timezone, lane, priority, next_occurrence_at,
      next_fire_at, last_fire_at, created_at, updated_at)
    SELECT w.*, ${isoInstant(now)}::timestamptz FROM unnest(
      ${uuids(writes.map((write) => write.uid))}, ${texts(writes.map((write) => write.id))},
      ${ints(writes.map((write) => write.version))}, ${booleans(writes.map((write) => write.definition.enabled))},
      ${texts(writes.map((write) => write.definition.cron))}, ${texts(writes.map((write) => write.definition.timezone))},
      ${texts(writes.map((write) => write.lane))},
      ${ints(writes.map((write) => PRIORITY_RANK[write.definition.priority]))},
      ${nexts}, ${nexts}, ${instants(writes.map((write) => write.lastFireAt))},
      ${instants(writes.map((write) => write.createdAt))}) AS w
    ON CONFLICT (uid) DO UPDATE SET version = excluded.version, enabled = excluded.enabled, cron = excluded.cron,
      timezone = excluded.timezone, lane = excluded.lane, priority = excluded.priority,
      next_occurrence_at = excluded.next_occurrence_at, next_fire_at = excluded.next_fire_at,
      last_fire_at = excluded.last_fire_at, locked_by = NULL, locked_at = NULL, error = NULL, plan_failures = 0,
      updated_at = excluded.updated_at`;
}

function insertVersions(writes: readonly ScheduleWrite[], now: Instant): SQL {
  const rows = writes.map((write) => versionRow(write, now));
  return sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition, payload)
    SELECT w.uid, w.version, w.id, w.change, ${isoInstant(now)}::timestamptz, w.definition::jsonb, w.payload
    FROM unnest(${uuids(rows.map((row) => row.scheduleUid))}, ${ints(rows.map((row) => row.version))},
      ${texts(rows.map((row) => row.scheduleId))}, ${texts(rows.map((row) => row.change))},
      ${texts(rows.map((row) => JSON.stringify(row.definition)))}, ${texts(rows.map((row) => row.payload))})
      AS w(uid, version, id, change, definition, payload)`;
}

function versionRow(write: ScheduleWrite, now: Instant) {
  const { payload, ...definition } = write.definition;
  return {
    scheduleUid: write.uid,
    version: write.version,
    scheduleId: write.id,
    change: write.version === 1 ? ('created' as const) : ('updated' as const),
    at: now,
    definition,
    payload,
  };
}
