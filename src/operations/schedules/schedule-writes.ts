/**
 * Guarantees: what a change makes of a schedule follows from the schedule as it is under its lock, and from nothing else.
 * Transaction: none; the callers lock, and write.
 * If the process dies here: nothing is written.
 */
import type { Scope } from '../../core/access/scope.ts';
import { type Instant, uuidV7 } from '../../core/instant.ts';
import {
  cursorUnder,
  movesTimes,
  sameDefinition,
  withDatesKept,
  withoutEndedPause,
} from '../../core/time/definition-change.ts';
import { owedByCalendars } from '../../core/days/decided-dates.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import { calendarIdsOf, isHeartbeat } from '../../core/timing/timing.ts';
import { type KnownCalendars, unappliedSince } from '../../store/calendars/calendar-histories.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import type { TargetRegistry } from '../../targets/target.ts';
import { calendarsFor } from './check-names.ts';
import type { Edited } from './plan-before-update.ts';
import { randomBytes } from 'node:crypto';

export interface ScheduleChange {
  id: string;
  /** The name of the caller; null: it has none. */
  by: string | null;
  /** What the caller may name beside what the schedule names already. */
  scope: Scope;
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
  { now, calendars: known }: { now: Instant; calendars: KnownCalendars },
): Edited {
  const uid = current?.uid ?? newScheduleUid(now);
  const { id, by } = change;
  const calendars = calendarsFor(change, current, known);
  const decided = withoutEndedPause(change.decide(current, now, calendars, uid));
  const lane = targets.laneOf(decided.target);
  if (!current) {
    const definition = decided;
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
  if (sameDefinition(current.definition, decided)) return { schedule: current, write: null };
  const edit = withDatesKept(decided, current, now, calendars.histories);
  const { definition } = edit;
  const owedEarlier = owedBefore(current, definition, { now, calendars });
  const owed = [...new Set([...owedEarlier, ...edit.owed])].sort((a, b) => a - b);
  const cursor = cursorUnder(definition, current, current, now, calendars.histories);
  const version = current.version + 1;
  return {
    schedule: current,
    write: { ...asWrite(current, by), version, definition, lane, ...cursor },
    owed: definition.enabled ? owed : [],
  };
}

/** What an edit of a calendar owes the schedule as it was: once its fire times change, nobody else can tell. */
function owedBefore(
  current: Schedule,
  definition: Definition,
  { now, calendars }: { now: Instant; calendars: KnownCalendars },
): Instant[] {
  const before = current.definition;
  const editedAt = unappliedSince(calendars, calendarIdsOf(before));
  if (editedAt === null || !before.enabled || !movesTimes(before, definition)) return [];
  return owedByCalendars(before, current, calendars.histories, { editedAt, now });
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
  const isOver = nextFireAt === null && afterUid === null && !isHeartbeat(definition);
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

let made = 0;

/**
 * The uid of a new schedule: UUIDv7, with a counter behind its time (RFC 9562 §6.2, method 1; at most 4,096 in a row are in order).
 * Schedules that are created together, and as a rule fire together, then stand together in every index on the uid. With random ones each
 * fire of a herd touches another page.
 */
export function newScheduleUid(now: Instant): string {
  made = (made + 1) % 0x1000;
  return uuidV7(now, made.toString(16).padStart(3, '0') + randomBytes(8).toString('hex'));
}
