import type { ListSchedulesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';

type Row = ListSchedulesResponse['items'][number];
type RecentRun = NonNullable<Row['recentRuns']>[number];

export const ORDERS = [
  ['', 'By id'],
  ['nextFire', 'By next fire'],
  ['lastResult', 'By last result'],
] as const;

/** The worst first. */
const WORST_FIRST: readonly string[] = [
  'failed',
  'abandoned',
  'unknown',
  'cancelled',
  'skipped',
  'succeeded',
];
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

/** All labels of these schedules, as `key:value`, in their order. */
export function labelsOf(rows: readonly Row[]): string[] {
  const all = rows.flatMap(({ labels }) => Object.entries(labels).map(([key, value]) => `${key}:${value}`));
  return [...new Set(all)].sort();
}

/** How many they are, and whether the order reaches beyond this page. */
export function countText(shown: number, isWhole: boolean, order: string | null): string {
  const schedules = shown === 1 ? '1 schedule' : `${shown} schedules`;
  if (isWhole) return schedules;
  return `${schedules} on this page${order === null ? '' : ', and sorted within it'}`;
}
