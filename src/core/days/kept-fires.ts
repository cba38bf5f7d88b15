import type { CronTimes } from '../cron/cron.ts';
import type { DayRule } from '../cron/cron-wall.ts';
import { leastOf } from '../cron/remembering.ts';
import { dayOfDate } from '../exclusions/date-entries.ts';
import type { Instant, DayNumber } from '../instant.ts';
import type { KeptDate, KeptDates } from '../timing/day-rules.ts';

type Series = KeptDate['fires'][number];

/** Leaves out the dates that were decided before an edit: what they still fire is in `keptFires`. */
export function closedDays({ dates }: KeptDates): DayRule {
  const closed = new Set<DayNumber>(dates.flatMap(({ date }) => dayOfDate(date) ?? []));
  return {
    firstFrom: (day) => {
      let open = day;
      while (closed.has(open)) open += 1;
      return open;
    },
  };
}

/** The fires that are left of dates that were decided before an edit, or by one. */
export function keptFires({ dates }: { dates: readonly Pick<KeptDate, 'fires'>[] }): CronTimes {
  const all = dates.flatMap(({ fires }) => fires);
  return {
    next: (after) => leastOf(all, (one) => nextIn(one, after)),
    noteOf: () => null,
  };
}

/** The date of a fire that was kept; null: it is no such fire. */
export function keptDateOf({ dates }: KeptDates, at: Instant): KeptDate | null {
  return dates.find(({ fires }) => fires.some((one) => nextIn(one, at - 1) === at)) ?? null;
}

/** Instants in order, as few series of equal steps as one pass finds: a fire each minute of a day is one. */
export function inSeries(instants: Iterable<Instant>): Series[] {
  const series: [Instant, number, number][] = [];
  for (const at of instants) {
    const last = series.at(-1);
    // A step, once there is one, goes on.
    if (!last || (last[2] > 1 && at !== last[0] + last[1] * last[2])) series.push([at, 0, 1]);
    else if (last[2] === 1) [last[1], last[2]] = [at - last[0], 2];
    else last[2] += 1;
  }
  return series;
}

export function instantsOf([first, step, count]: Series): Instant[] {
  return Array.from({ length: count }, (_, index) => first + index * step);
}

function nextIn([first, step, count]: Series, after: Instant): Instant | null {
  if (after < first) return first;
  const index = step === 0 ? count : Math.floor((after - first) / step) + 1;
  return index < count ? first + index * step : null;
}
