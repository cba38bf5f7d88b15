import type { ListSchedulesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { numbered } from '../../parts/lists/bulk-words.ts';

type Row = ListSchedulesResponse['items'][number];
type RecentRun = NonNullable<Row['recentRuns']>[number];

export const ORDERS = [
  ['', 'By id'],
  ['nextFire', 'By next fire'],
  ['lastResult', 'By last result'],
] as const;

/** The worst first. */
const WORST_FIRST: readonly string[] = ['failed', 'abandoned', 'unknown', 'cancelled', 'skipped', 'succeeded'];
const FAILED = WORST_FIRST.slice(0, 3);

/** The newest of its recent runs that has ended. */
function lastEnded({ recentRuns = [] }: Row): RecentRun | null {
  return recentRuns.find(({ status }) => WORST_FIRST.includes(status)) ?? null;
}

/** The last run that has ended, where it did not go well; null: it did, or there is none. */
export function lastFailure(row: Row): RecentRun | null {
  const last = lastEnded(row);
  return last && FAILED.includes(last.status) ? last : null;
}

/** The daemon lists by id; what it has answered is put into another order here. */
export function inOrder(rows: readonly Row[], order: string | null): Row[] {
  const rank = (row: Row): number => {
    if (order === 'nextFire') return row.nextFireAt === null ? Infinity : Date.parse(row.nextFireAt);
    if (order !== 'lastResult') return 0;
    const last = lastEnded(row);
    return last === null ? Infinity : WORST_FIRST.indexOf(last.status);
  };
  return [...rows].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)));
}

/** All labels of these schedules or runs, as `key:value`, in their order. */
export function labelsOf(rows: readonly { labels: Record<string, string> }[]): string[] {
  const all = rows.flatMap(({ labels }) => Object.entries(labels).map(([key, value]) => `${key}:${value}`));
  return [...new Set(all)].sort();
}

export interface Shown {
  /** On this page. */
  count: number;
  /** There are no other pages. */
  isWhole: boolean;
  isFiltered: boolean;
  order: string | null;
}

/** How many they are, of how many, and whether the order reaches beyond this page. `total`: of all schedules; null: not known. */
export function countText({ count, isWhole, isFiltered, order }: Shown, total: number | null): string {
  if (isWhole) return numbered(count, 'schedules');
  // It is a little old, and was perhaps counted before most of them were made.
  const isKnown = !isFiltered && total !== null && total > count;
  const loaded = isKnown
    ? `${count} of ${numbered(total, 'schedules')}`
    : `${numbered(count, 'schedules')} loaded, there are more`;
  return order === null ? loaded : `${loaded}; sorted within this page`;
}
