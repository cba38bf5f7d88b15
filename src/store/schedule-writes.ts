import { eq, inArray, sql } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import { type Definition, PRIORITY_RANK } from '../core/schedule.ts';
import type { Executor } from './executor.ts';
import type { Intent } from './intents.ts';
import { runs, scheduleVersions, schedules } from './schema.ts';
import { type InstantText, rowsOf, toInstant } from './rows.ts';

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

export async function databaseNow(db: Executor): Promise<Instant> {
  const [row] = await rowsOf<{ now: InstantText }>(db, sql`SELECT clock_timestamp() AS now`);
  if (!row) throw new Error('the database told no time');
  return toInstant(row.now);
}

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
  await tx
    .insert(schedules)
    .values(writes.map((write) => scheduleRow(write, now)))
    .onConflictDoUpdate({ target: schedules.uid, set: REWRITTEN });
  await tx.insert(scheduleVersions).values(writes.map((write) => versionRow(write, now)));
  await tx.execute(sql`SELECT pg_notify(${SCHEDULES_CHANGED}, '')`);
}

/** Records what was due before an edit, unclaimed. The caller holds the schedules' row locks. */
export async function recordDueBeforeEdit(
  tx: Executor,
  due: readonly DueFires[],
  now: Instant,
): Promise<void> {
  const rows = due.flatMap(({ schedule, intents }) =>
    intents.map((intent) => ({
      ...intent,
      scheduleVersion: schedule.version,
      scheduleId: schedule.id,
      status: 'pending' as const,
      lane: schedule.lane,
      priority: PRIORITY_RANK[schedule.definition.priority],
      attempts: 0,
      createdAt: now,
      updatedAt: now,
    })),
  );
  if (rows.length > 0) await tx.insert(runs).values(rows).onConflictDoNothing();
}

export interface DueFires {
  schedule: Pick<ScheduleWrite, 'id' | 'version' | 'definition' | 'lane'>;
  intents: readonly Omit<Intent, 'claimed'>[];
}

/** Deletes the schedule's row; what is open of its runs is abandoned, its versions and runs stay readable. */
export async function deleteScheduleAndAbandon(
  tx: Executor,
  last: ScheduleWrite,
  now: Instant,
): Promise<void> {
  const abandoned = {
    status: 'abandoned' as const,
    reason: 'deleted',
    finishedAt: now,
    updatedAt: now,
  };
  // Said twice, since each half has its index.
  await tx
    .update(runs)
    .set(abandoned)
    .where(sql`${runs.scheduleUid} = ${last.uid} AND status = 'pending' AND claimed_by IS NULL`);
  await tx
    .update(runs)
    .set(abandoned)
    .where(sql`${runs.scheduleUid} = ${last.uid} AND status = 'pending' AND claimed_by IS NOT NULL`);
  await tx.insert(scheduleVersions).values({ ...versionRow(last, now), change: 'deleted' });
  await tx.delete(schedules).where(eq(schedules.uid, last.uid));
}

/** Uids of every schedule that was ever known under the id, deleted ones included. */
export async function uidsOf(db: Executor, ids: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectDistinct({ uid: scheduleVersions.scheduleUid })
    .from(scheduleVersions)
    .where(inArray(scheduleVersions.scheduleId, [...ids]));
  return rows.map((row) => row.uid);
}

const excluded = (column: string) => sql.raw(`excluded.${column}`);

/** Everything but identity and birth: what an edit of an existing row replaces. */
const REWRITTEN = {
  version: excluded('version'),
  enabled: excluded('enabled'),
  cron: excluded('cron'),
  timezone: excluded('timezone'),
  lane: excluded('lane'),
  priority: excluded('priority'),
  nextOccurrenceAt: excluded('next_occurrence_at'),
  nextFireAt: excluded('next_fire_at'),
  lastFireAt: excluded('last_fire_at'),
  lockedBy: null,
  lockedAt: null,
  error: null,
  planFailures: 0,
  updatedAt: excluded('updated_at'),
};

function scheduleRow(write: ScheduleWrite, now: Instant): typeof schedules.$inferInsert {
  const { definition } = write;
  return {
    uid: write.uid,
    id: write.id,
    version: write.version,
    enabled: definition.enabled,
    cron: definition.cron,
    timezone: definition.timezone,
    lane: write.lane,
    priority: PRIORITY_RANK[definition.priority],
    nextOccurrenceAt: write.nextOccurrenceAt,
    nextFireAt: write.nextOccurrenceAt,
    lastFireAt: write.lastFireAt,
    createdAt: write.createdAt,
    updatedAt: now,
  };
}

function versionRow(write: ScheduleWrite, now: Instant): typeof scheduleVersions.$inferInsert {
  const { payload, ...definition } = write.definition;
  return {
    scheduleUid: write.uid,
    version: write.version,
    scheduleId: write.id,
    change: write.version === 1 ? 'created' : 'updated',
    at: now,
    definition,
    payload,
  };
}
