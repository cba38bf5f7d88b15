import type { DeliveredRun } from '../load/delivery.ts';
import { type Evidence, type Faults, occurrenceOf } from './evidence.ts';

interface Context {
  /** The first delivery of each occurrence. */
  arrived: ReadonlyMap<string, DeliveredRun>;
  faults: Faults;
}

/**
 * A run's row says when it ended. firelock knows of the end when the row has been written: a little later, or some seconds later where
 * the disk stalls.
 */
const WRITTEN_WITHIN_MS = 5_000;

/**
 * Of schedules whose runs must not overlap: no two were under way at once, and what was skipped was skipped for a run that was. Answers
 * the occurrences that were skipped rightly.
 */
export function checkOverlap(evidence: Evidence, { arrived, faults }: Context): Set<string> {
  const skipped = new Set<string>();
  for (const runs of groupedBySchedule(evidence.overlapRuns)) {
    let busyUntil = -Infinity;
    for (const run of [...runs].sort((one, other) => one.scheduledFor - other.scheduledFor)) {
      if (run.status !== 'skipped') {
        busyUntil = Math.max(busyUntil, run.finishedAt ?? Infinity);
        continue;
      }
      const occurrence = occurrenceOf(run);
      if (run.reason !== 'overlap' || busyUntil + WRITTEN_WITHIN_MS < run.scheduledFor)
        faults.notHeldBack.push(occurrence);
      else skipped.add(occurrence);
      if (arrived.has(occurrence)) faults.notDue.push(`${occurrence}, which is recorded as skipped`);
    }
  }
  checkAtOnce(evidence, faults);
  return skipped;
}

function checkAtOnce({ schedules, deliveries }: Evidence, faults: Faults): void {
  const ids = new Set(schedules.filter(({ kind }) => kind === 'overlap').map(({ id }) => id));
  const alone = deliveries.filter(({ scheduleId }) => ids.has(scheduleId));
  for (const own of groupedBySchedule(alone)) {
    let underWay: DeliveredRun[] = [];
    for (const delivery of own) {
      underWay = underWay.filter(({ endedAt }) => endedAt === null || endedAt > delivery.at);
      const other = underWay.find(({ runId }) => runId !== delivery.runId);
      if (other !== undefined) faults.atOnce.push(`${occurrenceOf(delivery)}, during ${occurrenceOf(other)}`);
      underWay.push(delivery);
    }
  }
}

function groupedBySchedule<Item extends { scheduleId: string }>(items: readonly Item[]): Item[][] {
  return [...Map.groupBy(items, ({ scheduleId }) => scheduleId).values()];
}
