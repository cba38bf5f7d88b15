import { describe, expect, it } from 'vitest';
import { silencesOf } from './failover-report.ts';
import type { Failover } from './failovers.ts';

const failover = (at: number, wholeAt: number): Failover => ({
  ...{ kind: 'kill', from: 'a', to: 'b', at, wholeAt },
  promotedAt: at + 1,
  firingAt: at + 2,
});
const silent = (failovers: Failover[], arrivals: number[]) =>
  silencesOf(
    failovers,
    arrivals.map((at) => ({ at })),
  ).map(({ silentMs }) => silentMs);

describe('the time without fires', () => {
  it('is the longest from the last arrival before the failover on', () => {
    expect(silent([failover(1_500, 20_000)], [0, 1_000, 12_000, 13_000, 14_000])).toEqual([11_000]);
  });

  it('is one for each failover, and what comes after the next one is not of the first', () => {
    const failovers = [failover(1_500, 9_000), failover(10_500, 30_000)];
    expect(silent(failovers, [1_000, 4_000, 5_000, 10_000, 22_000])).toEqual([5_000, 12_000]);
  });

  it('ends for the last one when all nodes follow', () => {
    expect(silent([failover(1_500, 9_000)], [1_000, 4_000, 8_000, 60_000])).toEqual([4_000]);
  });
});
