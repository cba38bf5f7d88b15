import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../../../src/core/runs/attempts/settlement.ts';

describe('the wait before another attempt', () => {
  const policy = { maxAttempts: 10, minBackoffSeconds: 10, maxBackoffSeconds: 60 };
  it('doubles with each failure up to the cap, give or take a tenth', () => {
    expect([1, 2, 3, 4, 5].map((failures) => backoffMs(policy, failures, null, 0.5))).toEqual([
      10_000, 20_000, 40_000, 60_000, 60_000,
    ]);
    expect(backoffMs(policy, 1, null, 0)).toBe(9_000);
    expect(backoffMs(policy, 1, null, 0.999999)).toBe(11_000);
  });
  it('is lengthened by the target’s Retry-After up to the cap, never shortened', () => {
    expect(backoffMs(policy, 1, 30, 0.5)).toBe(30_000);
    expect(backoffMs(policy, 1, 3600, 0.5)).toBe(60_000);
    expect(backoffMs(policy, 3, 1, 0.5)).toBe(40_000);
  });
});
