import { sql } from 'drizzle-orm';
import { isoOrNull } from '../../core/instant.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { ScheduleWrite } from './write-schedules.ts';

/**
 * Has planning go on elsewhere, after fires were recorded under the schedule's row lock. It takes the fire-lock away: the guard of a plan
 * that is under way refuses it.
 */
export async function moveOnUnderLock(
  tx: Transaction,
  write: Pick<ScheduleWrite, 'uid' | 'nextOccurrenceAt' | 'nextFireAt' | 'plannedThrough' | 'lastFireAt'>,
): Promise<void> {
  const at = (moment: number | null) => sql`${isoOrNull(moment)}::timestamptz`;
  await tx.execute(sql`-- moveOnUnderLock
    UPDATE schedules SET next_occurrence_at = ${at(write.nextOccurrenceAt)}, next_fire_at = ${at(write.nextFireAt)},
      planned_through = greatest(planned_through, ${at(write.plannedThrough)}), last_fire_at = greatest(last_fire_at, ${at(write.lastFireAt)}),
      locked_by = NULL, locked_at = NULL, error = NULL, plan_failures = 0
    WHERE uid = ${write.uid}`);
}
