import { cronTimes } from '../../../core/cron/cron.ts';
import { EARLIEST } from '../../../core/instant.ts';
import type { Import, Imported, Remark } from './imported.ts';

/** The same schedules while the other scheduler goes on: they record, send nothing, and wait for reports. */
export function watched({ schedules, remarks }: Import): Import {
  const delayed = schedules.filter(({ fields }) => fields['jitterSeconds'] !== undefined);
  return {
    schedules: schedules.map(watchedOne),
    remarks: [...remarks, ...delayed.map(({ line }): Remark => ({ line, message: DELAY, isLost: false }))],
  };
}

const DELAY = 'RANDOM_DELAY: no jitterSeconds while firelock only watches, since cron chooses another delay';

function watchedOne({ fields, ...rest }: Imported): Imported {
  const { id, jitterSeconds: delay = 0, ...others } = fields;
  const completionTimeoutSeconds = patienceSeconds(others, Number(delay));
  return { ...rest, fields: { id, observe: { until: null }, completionTimeoutSeconds, ...others } };
}

const USUAL_SECONDS = 3600;

/** Shorter than any gap: a report is for the oldest run that is open, so a run that was missed must have ended before the next one. */
function patienceSeconds(fields: Readonly<Record<string, unknown>>, delaySeconds: number): number {
  return Math.min(USUAL_SECONDS + delaySeconds, Math.floor((shortestGapSeconds(fields) * 5) / 6));
}

const MOMENTS = 64;

function shortestGapSeconds({ everySeconds, cron, timezone }: Readonly<Record<string, unknown>>): number {
  if (typeof everySeconds === 'number') return everySeconds;
  const times = cronTimes(String(cron), String(timezone), 'x');
  let shortest = Infinity;
  let last: number | null = null;
  for (let at = times.next(EARLIEST), count = 0; at !== null && count < MOMENTS; at = times.next(at)) {
    if (last !== null) shortest = Math.min(shortest, (at - last) / 1000);
    last = at;
    count += 1;
  }
  return shortest;
}
