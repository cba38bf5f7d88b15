import { eq } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { scheduleVersions, schedules } from '../../postgres/schema.ts';
import { isOutcomeWatched } from '../../core/schedules/outcome-watch.ts';
import { abandonOpenRuns } from '../runs/ends/abandon-runs.ts';
import { deleteWatches } from './watches/outcome-watches.ts';
import type { ScheduleWrite } from './write-schedules.ts';

/** Deletes the schedule's row; what is open of its runs is abandoned, or is from now on (`isMore`); its versions and runs stay readable. */
export async function deleteScheduleAndAbandon(
  tx: Transaction,
  last: ScheduleWrite,
  now: Instant,
): Promise<{ abandoned: number; isMore: boolean; effects: number }> {
  // First, since of a schedule that goes nothing is to follow from its failures.
  await deleteWatches(tx, isOutcomeWatched(last.definition) ? [last.uid] : []);
  const abandoned = await abandonOpenRuns(tx, last);
  await tx.insert(scheduleVersions).values({ ...versionRow(last, now), change: 'deleted' });
  await tx.delete(schedules).where(eq(schedules.uid, last.uid));
  return abandoned;
}

function versionRow(write: ScheduleWrite, now: Instant) {
  const { payload, ...definition } = write.definition;
  return {
    scheduleUid: write.uid,
    version: write.version,
    scheduleId: write.id,
    at: now,
    by: write.by,
    definition,
    payload,
  };
}
