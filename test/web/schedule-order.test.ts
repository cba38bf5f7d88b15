import { expect, it } from 'vitest';
import { countText, inOrder, labelsOf, lastFailure } from '../../web/src/pages/schedules/order.ts';

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

it('the list says how many it has, and whether there are more than it could sort', () => {
  expect(countText(1, true, null)).toBe('1 schedule');
  expect(countText(50, false, null)).toBe('50 schedules on this page');
  expect(countText(50, false, 'nextFire')).toBe('50 schedules on this page, and sorted within it');
});

it('each label is suggested once', () => {
  expect(labelsOf(ROWS)).toEqual(['all:x', 'team:a', 'team:b', 'team:c', 'team:d']);
});
