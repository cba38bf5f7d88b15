import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { newRun, type OfSchedule, UNGUARDED } from '../../core/runs/new-run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { plannedRunId } from '../../core/runs/run.ts';
import type { PlannedFire, SkipReason } from '../../core/time/plan-due.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { instants, ints, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, recordsOf } from '../../postgres/sql/rows.ts';
import { OF_SCHEDULE } from '../runs/record-columns.ts';
import { recordRuns } from '../runs/lock-and-save.ts';
import type { TimedSchedule } from './locked-schedule.ts';
import { isOver } from './search/schedule-conditions.ts';
import { deletePlannedSkips } from './skips.ts';

/** What `firelock resume` reads and writes of schedules while no instance lives. */

/** A schedule whose cursor lies in the past, as it was read: the guard of its move. */
export interface DueSchedule extends TimedSchedule {
  /** NaN if the row contains no moment. */
  nextOccurrenceAt: Instant;
  /** A caller may have asked that some of its fires are not made. */
  hasSkips: boolean;
}

/** Ordered by uid, after the uid `after`. Without schedules that are paused, have ended or are in error. */
export function listDueSchedules(
  db: Executor,
  now: Instant,
  { after, limit }: { after: string; limit: number },
): Promise<DueSchedule[]> {
  return recordsOf<DueSchedule>(db)(sql`-- listDueSchedules
    SELECT uid, id, version, timing, created_at, next_occurrence_at, has_skips FROM schedules
    WHERE enabled AND error IS NULL AND next_fire_at <= ${isoInstant(now)}::timestamptz AND uid > ${after}
    ORDER BY uid LIMIT ${limit}`);
}

export interface Skip {
  schedule: DueSchedule;
  /** The records for what was due, in order: one for all, and one for each fire that a caller asked to skip anyway. */
  fires: (PlannedFire & { skipped: SkipReason })[];
  nextOccurrenceAt: Instant | null;
  nextFireAt: Instant | null;
}

/**
 * Moves schedules on and records what was due of each as skipped. One that was edited, moved or
 * set aside since it was read is left as it is. Answers the uids of those moved on. Callers sort by uid.
 */
export async function skipDueIfUnmoved(tx: Transaction, skips: readonly Skip[]): Promise<ReadonlySet<string>> {
  const schedules = skips.map(({ schedule }) => schedule);
  const rows = await recordsOf<OfSchedule>(tx)(sql`-- skipDueIfUnmoved
    UPDATE schedules s SET next_occurrence_at = i.next_occurrence_at, next_fire_at = i.next_fire_at,
      planned_through = greatest(s.planned_through, i.scheduled_for), locked_by = NULL, locked_at = NULL
    FROM unnest(${uuids(schedules.map(({ uid }) => uid))}, ${ints(schedules.map(({ version }) => version))},
      ${instants(schedules.map(({ nextOccurrenceAt }) => nextOccurrenceAt))},
      ${instants(skips.map(({ fires }) => fires.at(-1)?.scheduledFor ?? null))}, ${instants(skips.map((skip) => skip.nextOccurrenceAt))},
      ${instants(skips.map((skip) => skip.nextFireAt))})
      AS i(uid, version, first, scheduled_for, next_occurrence_at, next_fire_at)
    WHERE s.uid = i.uid AND CASE WHEN s.enabled AND s.error IS NULL
      THEN s.version = i.version AND s.next_occurrence_at = i.first END
    RETURNING ${OF_SCHEDULE}`);
  const moved = new Map(rows.map((row) => [row.scheduleUid, row]));
  const now = await databaseNow(tx);
  await recordRuns(
    tx,
    skips.flatMap((skip) => {
      const schedule = moved.get(skip.schedule.uid);
      return schedule ? skip.fires.map((fire) => skippedRun(schedule, fire, now)) : [];
    }),
  );
  await deletePlannedSkips(
    tx,
    schedules.flatMap(({ uid, hasSkips }) => (hasSkips && moved.has(uid) ? [uid] : [])),
  );
  return new Set(moved.keys());
}

function skippedRun(schedule: OfSchedule, { skipped, ...fire }: Skip['fires'][number], now: Instant): RunRecord {
  const run = {
    ...schedule,
    ...UNGUARDED,
    ...fire,
    id: plannedRunId(schedule.scheduleUid, fire.scheduledFor),
  };
  return newRun({ ...run, status: 'skipped', reason: skipped, finishedAt: now }, now);
}

export interface RestingSchedules {
  paused: number;
  ended: number;
  inError: number;
}

/** The schedules that `listDueSchedules` leaves out, even if they are due. */
export async function countRestingSchedules(db: Executor): Promise<RestingSchedules> {
  const [resting] = await recordsOf<RestingSchedules>(db)(sql`-- countRestingSchedules
    SELECT count(*) FILTER (WHERE NOT enabled)::int AS paused,
      count(*) FILTER (WHERE enabled AND error IS NULL AND ${isOver})::int AS ended,
      count(*) FILTER (WHERE enabled AND error IS NOT NULL)::int AS in_error
    FROM schedules`);
  if (!resting) throw new Error('the statement about schedules answered no row');
  return resting;
}
