import { addDays, startOfDay, startOfMonth } from '../../../state/local-time.ts';
import { dayText } from '../../../state/zone.ts';

export const VIEWS = ['hour', 'day', 'month'] as const;
export type View = (typeof VIEWS)[number];

export interface Period {
  view: View;
  from: number;
  to: number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** The hour, day or month that `at` lies in, as clocks in the zone show it. */
export function periodAt(view: View, at: number, zone: string): Period {
  if (view === 'hour') {
    const from = Math.floor(at / HOUR_MS) * HOUR_MS;
    return { view, from, to: from + HOUR_MS };
  }
  const day = dayText(at, zone);
  const [first, next] = view === 'day' ? [day, addDays(day, 1)] : [startOfMonth(day), startOfMonth(day, 1)];
  return { view, from: startOfDay(first, zone), to: startOfDay(next, zone) };
}

/** More cells than that in a row are too small to be hit. */
const MAX_CELLS = 96;
const SIZES_MS = [1, 5, 10, 15, 30, 60].map((minutes) => minutes * MINUTE_MS);

/** Where the buckets of a bar begin, and the end of the last. */
export function bucketEdges({ from, to }: Period): number[] {
  const size = SIZES_MS.find((one) => (to - from) / one <= MAX_CELLS) ?? HOUR_MS;
  const edges: number[] = [];
  for (let at = from; at < to; at += size) edges.push(at);
  return [...edges, to];
}

/** Whether each occurrence can have a cell of its own. */
export function fits(count: number): boolean {
  return count <= MAX_CELLS;
}

/** Where the days of a month begin, and the end of the last. */
export function dayEdges({ from, to }: Period, zone: string): number[] {
  const edges: number[] = [];
  for (let day = dayText(from, zone); startOfDay(day, zone) < to; day = addDays(day, 1))
    edges.push(startOfDay(day, zone));
  return [...edges, to];
}

/** Which view shows a schedule well that fires that often. Null: it is not known. */
export function viewFor(everyMs: number | null): View {
  if (everyMs === null) return 'day';
  if (everyMs < 45_000) return 'hour';
  return everyMs < 6 * HOUR_MS ? 'day' : 'month';
}
