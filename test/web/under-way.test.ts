import { expect, it } from 'vitest';
import { underWaySince } from '../../web/src/parts/under-way.ts';

const claimedAt = '2031-01-01T00:00:00.000Z';

it('a pending run is under way since it was claimed; one that waits for its attempt, and one that is over, is not', () => {
  expect(underWaySince({ status: 'pending', claimedAt })).toBe(claimedAt);
  expect(underWaySince({ status: 'pending', claimedAt: null })).toBeNull();
  for (const status of ['running', 'succeeded', 'failed', 'cancelled'] as const)
    expect([status, underWaySince({ status, claimedAt })]).toEqual([status, null]);
});
