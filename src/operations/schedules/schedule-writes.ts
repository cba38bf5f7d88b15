/**
 * Guarantees: what a change makes of a schedule follows from the schedule as it is under its lock, and from nothing else.
 * Transaction: none; the callers lock, and write.
 * If the process dies here: nothing is written.
 */
import type { Instant } from '../../core/instant.ts';
import { cursorUnder, sameDefinition, withoutEndedPause } from '../../core/schedules/definition-change.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import type { TargetRegistry } from '../../targets/registry.ts';
import type { Edited } from './plan-before-update.ts';
import { newScheduleUid } from './schedule-uid.ts';

export interface ScheduleChange {
  id: string;
  /** The name of the caller; null: it has none. */
  by: string | null;
  /** Ids of the calendars that the definition may name, beside those that the schedule names already. */
  calendars?: readonly string[];
  /**
   * Decides, under the schedule's row lock, the new state from the present one (null: it does not exist) and the
   * database's time. `calendars` are those that it names or may name; they stay unchanged until the edit is written.
   * `uid` is the schedule's, or the one that it will get. A definition that equals the present one changes nothing.
   * Throwing leaves everything as it was.
   */
  decide: (current: Schedule | null, now: Instant, calendars: KnownCalendars, uid: string) => Definition;
}

export interface ChangedSchedule {
  schedule: Schedule;
  change: 'created' | 'updated' | 'unchanged';
}

export function decide(
  targets: TargetRegistry,
  change: ScheduleChange,
  current: Schedule | null,
  { now, calendars }: { now: Instant; calendars: KnownCalendars },
): Edited {
  const uid = current?.uid ?? newScheduleUid(now);
  const definition = withoutEndedPause(change.decide(current, now, calendars, uid));
  const { id, by } = change;
  const lane = targets.laneOf(definition.target);
  if (!current) {
    const born = {
      uid,
      version: 1,
      lastFireAt: null,
      plannedThrough: null,
      afterUid: null,
      createdAt: now,
      by,
    };
    const cursor = cursorUnder(definition, null, { id, createdAt: now }, now, calendars.histories);
    return { schedule: null, write: { ...born, id, definition, lane, ...cursor } };
  }
  if (sameDefinition(current.definition, definition)) return { schedule: current, write: null };
  const cursor = cursorUnder(definition, current, current, now, calendars.histories);
  const version = current.version + 1;
  return {
    schedule: current,
    write: { ...asWrite(current, by), version, definition, lane, ...cursor },
  };
}

export function asWrite(schedule: Schedule, by: string | null): ScheduleWrite {
  // resolveFollowed sets `afterUid`; a deletion has none.
  return { ...schedule, afterUid: null, by };
}

export function changedSchedule({ schedule, write }: Edited, now: Instant): ChangedSchedule {
  if (!write) {
    if (!schedule) throw new Error('a schedule that does not exist cannot stay as it is');
    return { schedule, change: 'unchanged' };
  }
  const { definition, nextFireAt, afterUid } = write;
  const isOver = nextFireAt === null && afterUid === null;
  return {
    change: schedule ? 'updated' : 'created',
    schedule: {
      ...write,
      status: !definition.enabled ? 'paused' : isOver ? 'ended' : 'active',
      late: !isOver && staysLate(schedule, definition),
      error: null,
      nextFireAt,
      hasSkips: schedule?.hasSkips ?? false,
      lockedBy: null,
      lockedAt: null,
      updatedAt: now,
    },
  };
}

/** Whether it is late after this write: it was late, and the time that it has for a success has not grown. */
function staysLate(before: Schedule | null, { enabled, successWithinSeconds }: Definition): boolean {
  const within = before?.definition.successWithinSeconds ?? null;
  if (before?.late !== true || within === null || successWithinSeconds === null) return false;
  return enabled && successWithinSeconds <= within;
}
