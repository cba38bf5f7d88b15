// @module-tag long
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runGraphCampaign } from './graph-campaign.ts';
import { foundIn } from '../checker/violations.ts';
import { NEEDS_LINUX } from '../cluster/instance.ts';

test('runs that depend on each other end once and in order, over three daemons that are killed', async ({ skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  const { verdict, history, kills } = await runGraphCampaign({
    seed: 20261120,
    runs: 400,
    shape: 'mixed',
    instances: 3,
    killEveryMs: 3_000,
    paceMs: 12,
    limitSeconds: 240,
    root: join(import.meta.dirname, '..', '..', '..'),
    say: () => undefined,
  });
  expect(foundIn(verdict.violations).examples).toEqual({});
  // It was not all quiet, or nothing was shown; how much there was is up to the machine.
  expect(kills).toBeGreaterThan(0);
  expect(history.rows.length).toBeGreaterThan(150);
  expect(history.rows.filter(({ errorKind }) => errorKind === 'dependency').length).toBeGreaterThan(0);
  const repeated = history.deliveries.filter(({ attempt }) => attempt > 1);
  expect(repeated.length).toBeGreaterThan(3);
});
