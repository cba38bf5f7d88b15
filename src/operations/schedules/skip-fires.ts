/**
 * Guarantees: a fire that was asked to be skipped before its moment is not made, whichever instance plans it and however late; nor is one
 *   made twice that is not to be skipped after all. An edit keeps what still is a fire to come, and forgets the rest.
 * Transaction: one, under the schedule's row lock. It clears the fire-lock, so that a plan made without it writes nothing.
 * If the process dies here: it is asked for or not. A planner reads it before it plans, and forgets it with what it records.
 */
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { MAX_SKIPS, standingOf } from '../../core/time/skipped-fires.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Database } from '../../postgres/database.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import {
  countSkips,
  deleteSkips,
  deleteSkipUnderLock,
  insertSkipUnderLock,
  type Skips,
} from '../../store/schedules/skips.ts';
import { shareCalendarsOf } from '../calendars/named-calendars.ts';
import { hasNoTimesOfItsOwn, impossible, noSchedule, OperationRefused } from '../operation-refused.ts';
import type { Edited } from './plan-before-update.ts';

interface SkipRequest {
  scheduleId: string;
  fireAt: Instant;
  /** False: the fire is to be made after all. */
  skipped: boolean;
  reason: string | null;
  by: string | null;
}

/** @throws CronError if the schedule cannot be planned; OperationRefused */
export async function skipFire(
  { database, events, auditor }: { database: Database; events: EventBus; auditor?: Auditor },
  request: SkipRequest,
): Promise<void> {
  const isChange = await database.transaction((tx) => skipIn(tx, request, auditor));
  const { scheduleId, fireAt, skipped, reason } = request;
  if (isChange) events.emit({ type: 'fireSkipAsked', scheduleId, fireAt, skipped, reason });
}

/** False: it was so before. */
async function skipIn(tx: Transaction, request: SkipRequest, auditor?: Auditor): Promise<boolean> {
  const { scheduleId, fireAt, skipped, reason, by } = request;
  const schedule = (await lockSchedules(tx, [scheduleId])).get(scheduleId);
  if (!schedule) throw noSchedule(scheduleId);
  if (schedule.definition.after !== null) throw hasNoTimesOfItsOwn(scheduleId);
  // After the lock was taken: no planner has locked a fire that is still to come now.
  const { histories: calendars } = await shareCalendarsOf(tx, [schedule]);
  const now = await databaseNow(tx);
  const standing = standingOf(schedule, { fireAt, now, calendars });
  if (standing === 'over') throw isOver(request);
  if (standing === 'noFire') {
    const next = fireTimes(schedule.definition, schedule, calendars).next(fireAt);
    const hint = next === null ? '' : `; the next one is at ${isoInstant(next)}`;
    throw impossible('/fireAt', `is not a fire time of this schedule${hint}`);
  }
  const { uid } = schedule;
  const { isSkipped, isMade, toCome } = await countSkips(tx, { uid, fireAt }, now);
  if (isMade) throw isOver(request);
  if (isSkipped === skipped) return false;
  if (skipped && toCome >= MAX_SKIPS) throw impossible('/fireAt', TOO_MANY);
  if (skipped) await insertSkipUnderLock(tx, { uid, fireAt, reason, by }, now);
  else await deleteSkipUnderLock(tx, { uid, fireAt });
  await auditor?.note(tx, {
    action: skipped ? 'schedule.skip' : 'schedule.unskip',
    ...{ subject: schedule.id, scheduleId: schedule.id, detail: { fireAt: isoInstant(fireAt) } },
  });
  return true;
}

function isOver({ scheduleId, fireAt }: SkipRequest): OperationRefused {
  return new OperationRefused(
    409,
    `the fire of schedule ${scheduleId} at ${isoInstant(fireAt)} is not upcoming any more`,
  );
}

const TOO_MANY = `cannot be skipped: ${MAX_SKIPS} upcoming fires are skipped already, which is the limit`;

/** The uid of a schedule whose skips must be known for this write. */
export function uidWithSkips({ schedule, write }: Edited): string[] {
  return schedule?.hasSkips && write ? [schedule.uid] : [];
}

/**
 * Called after an edit was written, in its transaction: deletes the skips whose moment is no coming fire of the new
 * definition.
 */
export async function keepFiresToCome(
  tx: Transaction,
  edited: readonly Edited[],
  { skips, calendars }: { skips: ReadonlyMap<string, Skips>; calendars: Calendars },
  now: Instant,
): Promise<void> {
  const gone = edited.flatMap(({ schedule, write }) => {
    if (!schedule || !write) return [];
    const { uid } = schedule;
    const asked = [...(skips.get(uid) ?? [])].flatMap(([fireAt, { made }]) => (made ? [] : [fireAt]));
    return asked
      .filter((fireAt) => !isToCome({ ...schedule, ...write }, { fireAt, now, calendars }))
      .map((fireAt) => ({ uid, fireAt }));
  });
  if (gone.length > 0) await deleteSkips(tx, gone);
}

/** Under a definition that cannot be planned nothing is deleted: the edit that mends it decides. */
function isToCome(schedule: Schedule, moment: Parameters<typeof standingOf>[1]): boolean {
  try {
    const standing = standingOf(schedule, moment);
    return standing === 'toCome' || (standing === 'over' && isKeptBack(schedule, moment.fireAt));
  } catch {
    return true;
  }
}

/** Its moment has come, and maintenance has kept it from being planned: the tick after it must still know of the skip. */
function isKeptBack({ definition, nextOccurrenceAt, plannedThrough }: Schedule, fireAt: Instant): boolean {
  if (!definition.enabled || nextOccurrenceAt === null) return false;
  return fireAt >= nextOccurrenceAt && fireAt > (plannedThrough ?? -Infinity);
}
