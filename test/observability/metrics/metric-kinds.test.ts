import { Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { SecondsHistogram } from '../../../src/observability/metrics/metric-kinds.ts';

const NAME = 'a_seconds';
const HELP = 'For a test.';
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
// Below all bounds, on one, between two, above all.
const VALUES = [0, 0.004, 0.005, 0.02, 1, 1.5, 299, 1800, 1801, 0.25];

it('a histogram of seconds is scraped as the one of prom-client is', async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const own = new SecondsHistogram(ours, NAME, HELP);
  const other = new Histogram({ name: NAME, help: HELP, buckets: BUCKETS, registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const value of VALUES) {
    own.observe(value);
    other.observe(value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});

it('and so is one with a label, which has no series before its first value', async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const own = new SecondsHistogram(ours, NAME, HELP, 'target');
  const labelNames = ['target'];
  const other = new Histogram({ name: NAME, help: HELP, labelNames, buckets: BUCKETS, registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const [index, value] of VALUES.entries()) {
    const target = index % 3 === 0 ? 'pull' : 'http';
    own.observe(value, target);
    other.observe({ target }, value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});
