// @module-tag long
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCampaign } from '../campaign.ts';
import { FAILPOINT_PROGRAM, type Failpoint, GAPS, RARE, throughFailpoints } from './failpoints.ts';
import { NEEDS_LINUX } from '../cluster/instance.ts';
import { foundIn } from '../checker/violations.ts';

test('a process that ends or freezes in any gap of the fire protocol loses nothing and repeats no more than it may', async ({
  skip,
}) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  const both = (at: string): Failpoint[] => [
    { at, action: 'stop' },
    { at, action: 'kill' },
  ];
  const unreached: string[] = [];
  const { verdict } = await runCampaign({
    seed: 1,
    schedules: 40,
    instances: 6,
    editEveryMs: Infinity,
    fireEveryMs: 2_000,
    disturb: throughFailpoints({ often: GAPS.flatMap(both), rare: RARE }, unreached),
    rates: { answers: { unavailable: 0.05, lost: 0.15 }, lookupFails: 0.1 },
    root: join(import.meta.dirname, '..', '..', '..'),
    program: FAILPOINT_PROGRAM,
    drainSeconds: 90,
    say: () => undefined,
  });
  expect(foundIn(verdict.violations).examples).toEqual({});
  expect(unreached).toEqual([]);
  expect(verdict.expectedFires).toBeGreaterThan(500);
});
