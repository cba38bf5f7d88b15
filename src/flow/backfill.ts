/**
 * Guarantees: each occurrence of a past period has one run, whoever asks how often; what had ended unsent is opened again under its id.
 * Transaction: one, under the schedule's row lock; the occurrences are listed before it, and anew where the schedule was edited meanwhile.
 * What lies in a day that was dropped gets none: it may have had one. That is asked once the runs are touched, which no day is dropped under.
 * If the process dies here: all of it is there or nothing; the runs are pending, unclaimed, anybody's work.
 */
import { setImmediate } from 'node:timers/promises';
import type { Instant } from '../core/instant.ts';
import type { Schedule } from '../core/schedule.ts';
import { following, horizonOf } from '../core/time/catch-up.ts';
import { fireTimes } from '../core/time/fire-times.ts';
import { type BackfillFire, recordBackfillUnderLock } from '../store/backfills.ts';
import type { Database } from '../store/database.ts';
import { type Aftermath, NO_AFTERMATH } from '../store/followers.ts';
import { databaseNow } from '../store/database-now.ts';
import { NotNow } from '../store/errors.ts';
import { droppedBefore } from '../store/history-days.ts';
import { findSchedule, lockSchedules } from '../store/schedules.ts';

export interface BackfillDeps {
  database: Database;
  /** Nothing older can have a run. */
  retentionDays: number;
  /** Sees to what is there to be claimed. */
  followUp: (aftermath: Aftermath) => void;
}

export interface BackfillRequest {
  scheduleId: string;
  /** Inclusive. */
  from: Instant;
  /** Exclusive. */
  to: Instant;
  /** How many occurrences are looked at, the oldest first. */
  limit: number;
}

export type Backfilled =
  /** `remainingFrom`: the first occurrence that was not looked at. */
  | { kind: 'done'; created: number; existing: number; remainingFrom: Instant | null }
  | { kind: 'noSuchSchedule' }
  | { kind: 'follows' }
  | { kind: 'tooEarly'; horizon: Instant }
  | { kind: 'tooLate'; now: Instant };

/**
 * Fires what a schedule, as it is defined now, would have fired in a period of the past, paused or not.
 * @throws CronError where it cannot be planned; NotNow where it is being caught up with, or edited all the time
 */
export async function backfill(deps: BackfillDeps, request: BackfillRequest): Promise<Backfilled> {
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const { schedule, now, dropped } = await deps.database.run(async (db) => ({
      schedule: await findSchedule(db, request.scheduleId),
      now: await databaseNow(db),
      dropped: await droppedBefore(db),
    }));
    if (!schedule) return { kind: 'noSuchSchedule' };
    if (schedule.definition.after !== null) return { kind: 'follows' };
    const horizon = Math.max(horizonOf(now, deps.retentionDays), dropped ?? -Infinity);
    if (request.from < horizon) return { kind: 'tooEarly', horizon };
    if (request.to > now) return { kind: 'tooLate', now };
    const { fires, remainingFrom } = await occurrencesOf(schedule, request);
    const created = await record(deps.database, schedule, fires, request);
    // Edited, or a day was dropped: it is another request now.
    if (created === null) continue;
    const toPull = schedule.definition.target.type === 'pull';
    if (created > 0) deps.followUp({ ...NO_AFTERMATH, toClaim: created, toPull, openedSince: request.from });
    return { kind: 'done', created, existing: fires.length - created, remainingFrom };
  }
  throw new NotNow(`schedule ${request.scheduleId} is written too often at present`);
}

const MOST_ROUNDS = 5;
const SLICE_STEPS = 200;

async function occurrencesOf(schedule: Schedule, { from, to, limit }: BackfillRequest) {
  const times = fireTimes(schedule.definition, schedule);
  const fires: BackfillFire[] = [];
  let at = times.next(from - 1);
  while (at !== null && at < to && fires.length < limit) {
    fires.push({ scheduledFor: at, dueAt: times.dueAt(at) });
    if (fires.length % SLICE_STEPS === 0) await setImmediate();
    at = following(times, at);
  }
  return { fires, remainingFrom: at !== null && at < to ? at : null };
}

/** Null, and nothing is recorded: it is no longer the schedule whose occurrences these are, or days of the period are dropped by now. */
async function record(
  database: Database,
  listed: Schedule,
  fires: readonly BackfillFire[],
  { from, to }: BackfillRequest,
): Promise<number | null> {
  const recording = database.transaction(async (tx) => {
    const schedule = (await lockSchedules(tx, [listed.id])).get(listed.id);
    if (schedule?.uid !== listed.uid || schedule.version !== listed.version) return null;
    refuseWhileDue(schedule, to, await databaseNow(tx));
    const created = await recordBackfillUnderLock(
      tx,
      schedule.uid,
      fires.filter((fire) => isPlanned(schedule, fire)),
    );
    const dropped = await droppedBefore(tx);
    if (dropped !== null && from < dropped) throw new DayDropped();
    return created;
  });
  return recording.catch((error: unknown) => {
    if (error instanceof DayDropped) return null;
    throw error;
  });
}

/** A day of the period was dropped after it had been looked at. */
class DayDropped extends Error {}

/** What is delayed by its jitter beyond this moment is the planner's. */
function isPlanned({ status, nextOccurrenceAt }: Schedule, { scheduledFor }: BackfillFire): boolean {
  return status !== 'active' || nextOccurrenceAt === null || scheduledFor < nextOccurrenceAt;
}

/** The record that stands for what was missed is made at one of the occurrences, which must not have a run by then. */
function refuseWhileDue(schedule: Schedule, to: Instant, now: Instant): void {
  const { id, status, definition, nextOccurrenceAt } = schedule;
  if (status !== 'active' || nextOccurrenceAt === null || nextOccurrenceAt >= to) return;
  const dueAt = fireTimes(definition, schedule).dueAt(nextOccurrenceAt);
  if (dueAt > now) return;
  throw new NotNow(`schedule ${id} is being caught up with; then the rest can be backfilled`);
}
