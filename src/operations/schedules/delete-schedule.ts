/**
 * Guarantees: a delete first records what was due; the open runs of the schedule are abandoned, none is forgotten, and none is handed
 *   off any more. However many they are, the delete takes no longer: beyond a few hundred they are abandoned in slices.
 * Transaction: one, under the schedule's row lock; after it one for each slice (flow/backlogs.ts).
 * If the process dies here: everything or nothing of it is written; any instance does the slices that are left.
 */
import type { Scope } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import { wakeFor } from '../../runtime/loop/wake.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Auditor } from '../../store/audit/audit-rows.ts';
import { closeAlertsOf } from '../../store/alerts/alert-effects.ts';
import { byPerson } from './follow-edits.ts';
import { linkCalendars } from '../../store/calendars/calendar-cursors.ts';
import { followersOf, isFollowedByUnseen } from '../../store/effects/followers.ts';
import { deleteScheduleAndAbandon } from '../../store/schedules/write-schedules.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { deleteAllSkips, skipsOf } from '../../store/schedules/skips.ts';
import { emitResumed, resumeEnded, writeResumed } from './ended-pauses.ts';
import { shareCalendarsOf } from '../calendars/named-calendars.ts';
import { OperationRefused } from '../operation-refused.ts';
import { planBeforeUpdate } from './plan-before-update.ts';
import { planningOf, type ScheduleChangeDeps } from './schedule-changes.ts';
import { asWrite, type ScheduleChange } from './schedule-writes.ts';
import { uidWithSkips } from './skip-fires.ts';

/**
 * Deletes a schedule; its open runs are `abandoned`. `check` may throw, under the lock, to leave it. False: there is
 * none.
 * @throws OperationRefused, which names those that follow it
 */
export async function deleteSchedule(
  deps: ScheduleChangeDeps & { auditor?: Auditor },
  { id, by, scope }: Pick<ScheduleChange, 'id' | 'by' | 'scope'>,
  check: (current: Schedule) => void,
): Promise<boolean> {
  const deleted = await deps.database.transaction(async (tx) => {
    const found = await lockSchedules(tx, [id], 'UPDATE');
    const calendars = await shareCalendarsOf(tx, found.values());
    const ended = resumeEnded(found, await databaseNow(tx), calendars.histories);
    const schedule = ended.current.get(id);
    if (!schedule) return null;
    check(schedule);
    await refuseWhileFollowed(tx, schedule, scope);
    const now = await databaseNow(tx);
    const write = { ...asWrite(schedule, by), version: schedule.version + 1 };
    const skips = await skipsOf(tx, uidWithSkips({ schedule, write }));
    const edited = { schedule, write, isDeleted: true };
    const recorded = await planBeforeUpdate(tx, [edited], { ...planningOf(deps, now, calendars), skips });
    await writeResumed(tx, ended, now);
    await linkCalendars(tx, [{ uid: write.uid, before: calendarIdsOf(schedule.definition), after: [] }]);
    await forgetWhatIsOpen(tx, { schedule, by }, now);
    const { abandoned, isMore, effects } = await deleteScheduleAndAbandon(tx, write, now);
    await deps.auditor?.note(tx, {
      ...{ action: 'schedule.delete', subject: id, scheduleId: id },
      // Of more open runs this counts those that the call itself ended.
      detail: { version: write.version, abandonedRuns: abandoned, ...(isMore && { moreFollow: true }) },
    });
    return { version: write.version, abandoned, effects: effects + recorded.effects, resumed: ended.writes };
  });
  if (!deleted) return false;
  emitResumed(deps.events, deleted.resumed);
  const { version, abandoned, effects } = deleted;
  deps.events.emit({ type: 'schedulesWritten', changes: [{ scheduleId: id, change: 'deleted', version }] });
  if (abandoned > 0) deps.events.emit({ type: 'runsAbandoned', reason: 'deleted', scheduleId: id, count: abandoned });
  wakeFor(deps.wake, { effects, toAdmit: abandoned > 0 });
  return true;
}

async function refuseWhileFollowed(tx: Transaction, { uid }: Schedule, scope: Scope): Promise<void> {
  const followers = await followersOf(tx, uid, { scope, limit: MAX_NAMED + 1 });
  const andOthers = await isFollowedByUnseen(tx, uid, scope);
  if (followers.length === 0 && !andOthers) return;
  const first = followers.slice(0, MAX_NAMED).join(', ') + (followers.length > MAX_NAMED ? ' and more' : '');
  const named = [...(first === '' ? [] : [first]), ...(andOthers ? ['others, outside your scope'] : [])];
  const by = named.join(' and by ');
  throw new OperationRefused(409, `the schedule is followed by ${by}: delete these first, or let them follow another`);
}

/** Requests to skip its fires, and what is wrong with it. */
async function forgetWhatIsOpen(
  tx: Transaction,
  { schedule: { uid, hasSkips }, by }: { schedule: Schedule; by: string | null },
  now: Instant,
): Promise<void> {
  if (hasSkips) await deleteAllSkips(tx, uid);
  await closeAlertsOf(tx, [{ uid, overBy: byPerson('deleted', by) }], now);
}

/** A reader does not need more; the answer says that there are more. */
const MAX_NAMED = 100;
