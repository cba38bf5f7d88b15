import { and, asc, eq } from 'drizzle-orm';
import type { Executor } from '../../postgres/executor.ts';
import { scheduleVersions, schedules } from '../../postgres/schema.ts';
import { type ScheduleFilter, conditions } from './find-schedules.ts';

export type BulkScheduleFilter = Pick<ScheduleFilter, 'labels' | 'text' | 'statuses'>;

export interface MatchingSchedule {
  uid: string;
  id: string;
  enabled: boolean;
}

/** All of them, by id, without what they say. It reads all schedules unless the statuses are rare. */
export function matchingSchedules(db: Executor, filter: BulkScheduleFilter): Promise<MatchingSchedule[]> {
  return db
    .select({ uid: schedules.uid, id: schedules.id, enabled: schedules.enabled })
    .from(schedules)
    .innerJoin(
      scheduleVersions,
      and(eq(scheduleVersions.scheduleUid, schedules.uid), eq(scheduleVersions.version, schedules.version)),
    )
    .where(conditions(filter))
    .orderBy(asc(schedules.id));
}
