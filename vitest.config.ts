import { defineConfig } from 'vitest/config';
import { ATTACK } from './test/support/runner/attack.ts';
import { LONG } from './test/support/runner/long.ts';
import { QUICK_RESOLVE } from './test/support/runner/quick-start.ts';
import { projectsOf } from './test/support/runner/projects.ts';
import { HUNG_AFTER_MS } from './test/support/until.ts';
import { workersHere } from './test/support/runner/workers.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    ...projectsOf(process.env['FIRELOCK_TEST_POSTGRES']),
    globalSetup: ['test/support/runner/global-setup.ts'],
    // These are for what hangs. What is slow, on whatever machine, is never to come near them.
    testTimeout: HUNG_AFTER_MS,
    hookTimeout: HUNG_AFTER_MS,
    teardownTimeout: HUNG_AFTER_MS,
    // A second by default.
    expect: { poll: { timeout: HUNG_AFTER_MS } },
    tags: [
      { name: ATTACK, description: 'tries to break in, to starve others or to mislead' },
      { name: LONG, description: 'takes more than a few seconds by itself', timeout: 5 * HUNG_AFTER_MS },
    ],
    reporters: ['default', './test/support/runner/summary.ts'],
    maxWorkers: workersHere(),
    // No test changes what others share but databases, and those are their own: modules are loaded once per worker.
    isolate: false,
    // Most of what tests make is garbage soon: a larger young generation saves a tenth of their CPU time.
    execArgv: [`--import=${QUICK_RESOLVE}`, '--max-semi-space-size=64'],
  },
});
