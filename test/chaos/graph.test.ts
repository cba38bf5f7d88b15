import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runGraphCampaign } from './graph-campaign.ts';
import { GRAPH_VIOLATIONS } from './graph-violations.ts';

vi.setConfig({ testTimeout: 180_000 });

const NOTHING_FOUND = Object.fromEntries(Object.keys(GRAPH_VIOLATIONS).map((violation) => [violation, []]));

test.skipIf(process.platform !== 'linux')(
  'runs that depend on each other end once and in order, over three daemons that are killed',
  async () => {
    const { verdict, history, kills } = await runGraphCampaign({
      seed: 20261120,
      runs: 400,
      shape: 'mixed',
      instances: 3,
      killEveryMs: 3_000,
      paceMs: 12,
      limitSeconds: 90,
      root: join(import.meta.dirname, '..', '..'),
      say: () => undefined,
    });
    const found = Object.fromEntries(
      Object.entries(verdict.violations).map(([violation, { examples }]) => [violation, examples]),
    );
    expect(found).toEqual(NOTHING_FOUND);
    // It was not all quiet, or nothing was shown.
    expect(kills).toBeGreaterThan(1);
    expect(history.rows).toHaveLength(400);
    expect(history.rows.filter(({ errorKind }) => errorKind === 'dependency').length).toBeGreaterThan(3);
    const repeated = history.deliveries.filter(({ attempt }) => attempt > 1);
    expect(repeated.length).toBeGreaterThan(10);
  },
);
