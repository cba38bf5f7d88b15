import { CronError } from '../core/time/cron.ts';
import { CannotFollow } from '../flow/following.ts';
import { type ChangedSchedule, type ScheduleChange, changeSchedules } from '../flow/schedule-changes.ts';
import type { ApiDeps } from './deps.ts';
import { invalid, unforeseen } from './problem.ts';

/**
 * What cannot follow is told at the place of the body that says whom it follows: `pathOf` a schedule's definition.
 * @throws Problem 422
 */
export async function writeSchedules(
  deps: ApiDeps,
  changes: readonly Omit<ScheduleChange, 'by'>[],
  pathOf: (scheduleId: string) => string,
): Promise<ChangedSchedule[]> {
  try {
    return await changeSchedules(
      deps,
      changes.map((change) => ({ ...change, by: null, decide: outsideOfTheDatabase(change.decide) })),
    );
  } catch (error) {
    // Stored by a version that took it; nothing is said of when it fires but that it is to fire again.
    if (error instanceof CronError) throw invalid([{ path: '/cron', message: error.message }], 422);
    if (!(error instanceof CannotFollow)) throw error;
    const faults = error.faults.map(({ scheduleId, message }) => ({
      path: `${pathOf(scheduleId)}/after/scheduleId`,
      message,
    }));
    throw invalid(faults, 422);
  }
}

/** What goes wrong in deciding goes wrong in the middle of a transaction, and has nothing to do with it. */
function outsideOfTheDatabase(decide: ScheduleChange['decide']): ScheduleChange['decide'] {
  return (current, now) => {
    try {
      return decide(current, now);
    } catch (error) {
      throw error instanceof TypeError || error instanceof RangeError ? unforeseen(error) : error;
    }
  };
}
