/**
 * Guarantees: a pause that ends by itself ends as of `pauseUntil`, once, however late that is noticed: nothing due before it fires, and
 *   nothing due after it is lost.
 * Transaction: that of the callers, who have locked the schedules.
 * If the process dies here: nothing is written; the pause is still there, and any instance ends it.
 */
import type { Calendars } from '../../core/exclusions/exclusion.ts';
import type { Instant } from '../../core/instant.ts';
import { BY_FIRELOCK, cursorUnder, pauseEndedAt, withoutEndedPause } from '../../core/time/definition-change.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type ScheduleWrite, writeSchedules } from '../../store/schedules/write-schedules.ts';
import { keepAlerts, keepWatches, type WatchedEdit } from './follow-edits.ts';

/**
 * The pause is over, but the schedule cannot be planned, so it cannot be enabled. It stays paused, so that it can be
 * mended.
 */
export interface StillPaused {
  schedule: Schedule;
  error: string;
}

export interface ResumedSchedules {
  /** All of the schedules, as they are now. */
  current: Map<string, Schedule>;
  /** The versions that enable them. */
  writes: ScheduleWrite[];
  watched: WatchedEdit[];
  stillPaused: StillPaused[];
}

/** Of these schedules, enables those whose pause is over; `writeResumed` is to be called before anything else is written of them. */
export function resumeEnded(
  found: ReadonlyMap<string, Schedule>,
  now: Instant,
  calendars: Calendars,
): ResumedSchedules {
  const ended: ResumedSchedules = { current: new Map(found), writes: [], watched: [], stillPaused: [] };
  for (const schedule of found.values()) {
    const at = pauseEndedAt(schedule, now);
    if (at === null) continue;
    try {
      const write = enabledAt(schedule, at, calendars);
      const after = asWritten(schedule, write, at);
      ended.writes.push(write);
      // Periods that begin when it is resumed begin at the moment that was asked for.
      ended.watched.push({ before: schedule, after, at: Math.max(at, schedule.definition.pauseUntil ?? at) });
      ended.current.set(schedule.id, after);
    } catch (error) {
      ended.stillPaused.push({ schedule, error: reasonOf(error) });
    }
  }
  return ended;
}

export async function writeResumed(
  tx: Transaction,
  { writes, watched }: Pick<ResumedSchedules, 'writes' | 'watched'>,
  now: Instant,
): Promise<void> {
  await writeSchedules(tx, writes, now);
  await keepWatches(tx, watched);
  await keepAlerts(
    tx,
    watched.map((edit) => ({ ...edit, by: BY_FIRELOCK })),
  );
}

function enabledAt(schedule: Schedule, at: Instant, calendars: Calendars): ScheduleWrite {
  const definition = withoutEndedPause({ ...schedule.definition, enabled: true });
  const cursor = cursorUnder(definition, schedule, schedule, at, calendars);
  return { ...schedule, version: schedule.version + 1, definition, ...cursor, at, by: BY_FIRELOCK };
}

function asWritten(schedule: Schedule, write: ScheduleWrite, at: Instant): Schedule {
  const { version, definition, nextOccurrenceAt, nextFireAt, afterUid } = write;
  const isOver = nextFireAt === null && afterUid === null;
  return {
    ...schedule,
    version,
    definition,
    nextOccurrenceAt,
    nextFireAt,
    status: isOver ? 'ended' : 'active',
    error: null,
    updatedAt: at,
  };
}

/** Once it is committed. */
export function emitResumed(events: EventBus, writes: readonly ScheduleWrite[]): void {
  if (writes.length === 0) return;
  const changes = writes.map(({ id, version }) => ({ scheduleId: id, change: 'updated' as const, version }));
  events.emit({ type: 'pausesEnded', changes });
}
