// @module-tag long
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCampaign } from './campaign.ts';
import { randomly } from './faults/faults.ts';
import { profileOf } from './profiles.ts';
import { NEEDS_LINUX } from './cluster/instance.ts';
import { foundIn } from './checker/violations.ts';

test('three daemons and two workers under kills, freezes, cuts and outages keep every promise', async ({ skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  const profile = profileOf('short');
  const { verdict, history } = await runCampaign({
    ...profile,
    seed: 20261120,
    disturb: randomly(profile.nemesis),
    root: join(import.meta.dirname, '..', '..'),
    say: () => undefined,
  });
  expect(foundIn(verdict.violations).examples).toEqual({});
  // It was not all quiet, or nothing was shown; how much there was is up to the machine.
  expect(verdict.expectedFires).toBeGreaterThan(500);
  expect(history.disturbances.length).toBeGreaterThan(5);
  expect(history.commands?.executions.length).toBeGreaterThan(10);
  expect(history.edits.filter(({ outcome }) => outcome === 'acked').length).toBeGreaterThan(10);
});
