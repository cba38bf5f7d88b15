/**
 * Guarantees: fires that an edit of a calendar moves to a moment that has passed are recorded once, as `catchUp` says.
 * Transaction: one for each schedule, under its row lock; it shares the calendars and compares their editions.
 * If the process dies here: nothing is written; the calendar watch of any instance begins anew, and finds what was recorded.
 */
import { NO_SHARES, type ScopeShares, laneInScope } from '../../core/access/scope-shares.ts';
import { owedByCalendars } from '../../core/days/kept-dates.ts';
import type { Instant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { Database } from '../../postgres/database.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { CalendarUser } from '../../store/calendars/calendar-cursors.ts';
import { type KnownCalendars, unappliedSince } from '../../store/calendars/calendar-histories.ts';
import { shareFreeCalendars } from '../../store/calendars/share-calendars.ts';
import { emitJudged, judgeOverlapsNowOrSoon } from '../../store/runs/overlaps.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { lockFreeSchedules } from '../../store/schedules/search/lock-free-schedules.ts';
import { raisePlannedUnderLock } from '../../store/schedules/write-schedules.ts';
import { planBeforeUpdate } from '../schedules/plan-before-update.ts';
import { withoutRun } from '../schedules/runs-of-edits.ts';
import { asWrite } from '../schedules/schedule-writes.ts';
import { calendarIdsOf, type Timing } from '../../core/schedules/schedule.ts';

interface OwedDeps {
  database: Database;
  events: EventBus;
  /** Nothing older is recorded; absent: any age is. */
  retentionDays?: number;
  scopeShares?: ScopeShares;
}

/** A user of calendars that were edited. */
interface Owing {
  user: CalendarUser;
  timing: Timing;
}

/** Whether an edit of its calendars may owe it a fire; to be looked at again under its lock. */
export function mayBeOwed({ user, timing }: Owing, known: KnownCalendars, now: Instant): boolean {
  const editedAt = unappliedSince(known, calendarIdsOf(timing));
  if (editedAt === null || timing.onExcluded !== 'previous') return false;
  return owedByCalendars(timing, user, known.histories, { editedAt, now }).length > 0;
}

/** False: another transaction has its row, or a calendar was edited meanwhile. */
export async function recordOwed(
  { database, events, retentionDays = Infinity, scopeShares = NO_SHARES }: OwedDeps,
  { user }: Pick<Owing, 'user'>,
  known: KnownCalendars,
): Promise<boolean> {
  const judged = await database.transaction(async (tx) => {
    const editions = await shareFreeCalendars(tx, [...known.histories.keys()]);
    if ([...known.histories.keys()].some((id) => editions.get(id) !== known.editions.get(id))) return null;
    if ((await lockFreeSchedules(tx, [user.uid])).free.length === 0) return null;
    const schedule = (await lockSchedules(tx, [user.id])).get(user.id);
    if (schedule?.uid !== user.uid || !schedule.definition.enabled) return 'nothing';
    const now = await databaseNow(tx);
    const owed = await unrecorded(tx, schedule, known, now);
    if (owed.length === 0) return 'nothing';
    const write = asWrite(schedule, null);
    const edited = { schedule: { ...schedule, nextOccurrenceAt: null }, write, owed };
    const planning = { now, retentionDays, calendars: known.histories, skips: new Map<string, never>() };
    const lane = laneInScope(scopeShares, schedule.lane, schedule.id);
    await planBeforeUpdate(tx, [edited], { ...planning, laneOf: () => lane });
    await raisePlannedUnderLock(tx, write);
    return judgeOverlapsNowOrSoon(tx, [schedule.uid]);
  });
  if (judged !== null && judged !== 'nothing') emitJudged(events, judged);
  return judged !== null;
}

/** What the planner does not come to any more, since its cursor has passed it. */
async function unrecorded(
  tx: Transaction,
  schedule: Schedule,
  known: KnownCalendars,
  now: Instant,
): Promise<Instant[]> {
  const { definition, nextOccurrenceAt } = schedule;
  const editedAt = unappliedSince(known, calendarIdsOf(definition));
  if (editedAt === null) return [];
  const all = owedByCalendars(definition, schedule, known.histories, { editedAt, now });
  const owed = all.filter((at) => nextOccurrenceAt === null || at < nextOccurrenceAt);
  return owed.length === 0 ? [] : withoutRun(tx, schedule, definition.catchUp, owed);
}
