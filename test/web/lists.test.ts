import { expect, it } from 'vitest';
import { countText, inOrder, labelsOf, lastFailure } from '../../web/src/pages/schedules/order.ts';
import { doneText } from '../../web/src/parts/lists/bulk-words.ts';

type Row = Parameters<typeof inOrder>[0][number];

const row = (id: string, nextFireAt: string | null, ...statuses: string[]): Row => {
  const recentRuns = statuses.map((status) => ({ id: `${id} ${status}`, status }));
  return { id, nextFireAt, recentRuns, labels: { team: id, all: 'x' } } as unknown as Row;
};
const ROWS = [
  row('a', '2031-01-02T00:00:00Z', 'succeeded', 'failed'),
  row('b', null),
  row('c', '2031-01-01T00:00:00Z', 'running', 'failed'),
  row('d', '2031-01-01T00:00:00Z', 'pending', 'skipped', 'failed'),
];
const idsIn = (order: string | null) => inOrder(ROWS, order).map(({ id }) => id);

it('schedules stand by id, by their next fire, or by their last result, the worst first', () => {
  expect(idsIn(null)).toEqual(['a', 'b', 'c', 'd']);
  expect(idsIn('nextFire')).toEqual(['c', 'd', 'a', 'b']);
  expect(idsIn('lastResult')).toEqual(['c', 'd', 'a', 'b']);
  expect(ROWS.map((one) => lastFailure(one)?.id ?? null)).toEqual([null, null, 'c failed', null]);
});

it('the list says how many it has and of how many, or that there are more, and how far it is sorted', () => {
  const page = { count: 50, isWhole: false, isFiltered: false, order: null };
  expect(countText({ ...page, count: 1, isWhole: true }, 1234)).toBe('1 schedule');
  expect(countText(page, 1234)).toBe('50 of 1,234 schedules');
  expect(countText({ ...page, isFiltered: true }, 1234)).toBe('50 schedules loaded, there are more');
  // Counted before most of them were made, or by nobody.
  expect(countText(page, 7)).toBe('50 schedules loaded, there are more');
  expect(countText({ ...page, order: 'nextFire' }, null)).toBe(
    '50 schedules loaded, there are more; sorted within this page',
  );
});

it('each label is suggested once', () => {
  expect(labelsOf(ROWS)).toEqual(['all:x', 'team:a', 'team:b', 'team:c', 'team:d']);
});

it('a bulk action says what it did, to how many, and that there are more than one call changes', () => {
  expect(doneText({ changed: 3, remaining: 0 }, 'Pause', 'schedules')).toBe('Paused 3 schedules.');
  expect(doneText({ changed: 1, remaining: 0 }, 'Cancel', 'runs')).toBe('Cancelled 1 run.');
  expect(doneText({ changed: 1000, remaining: 2500 }, 'Retry', 'runs')).toBe(
    'Retried 1,000 runs. 2,500 are left: do it again for the next of them.',
  );
});
