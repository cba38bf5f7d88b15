/**
 * Guarantees: a caller with a scope cannot name what the scope does not show. What a schedule names already, it may go on naming:
 *   a caller with a wider scope may have written it.
 * Transaction: none; the callers read, and write.
 * If the process dies here: nothing is written.
 */
import { type Scope, sees, seesAllOf } from '../../core/access/scope.ts';
import { followedPrefix } from '../../core/schedules/followed-ids.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';

/** A write of a caller. */
export interface NamingWrite {
  write: ScheduleWrite;
  /** The schedule as it was; null: it is new. */
  before: Definition | null;
  scope: Scope;
}

/** Whether it may follow the schedules that it follows: the one that it names, or all of a prefix. */
export function mayFollow({ write, before, scope }: NamingWrite): boolean {
  const followed = write.definition.after?.scheduleId;
  if (followed === undefined || before?.after?.scheduleId === followed) return true;
  const prefix = followedPrefix(followed);
  return prefix === null ? sees(scope, followed) : seesAllOf(scope, prefix);
}

/** The calendars as they are to a caller of this scope: what it asks for and may not name in this schedule is one that there is not. */
export function calendarsFor(
  { scope, calendars: asked = [] }: { scope: Scope; calendars?: readonly string[] },
  current: Schedule | null,
  known: KnownCalendars,
): KnownCalendars {
  const named = current === null ? [] : calendarIdsOf(current.definition);
  const unseen = asked.filter((id) => !sees(scope, id) && !named.includes(id));
  if (unseen.length === 0) return known;
  const histories = new Map(known.histories);
  const editions = new Map(known.editions);
  for (const id of unseen) {
    histories.set(id, { id, versions: [] });
    editions.delete(id);
  }
  return { ...known, histories, editions };
}
