import { defineConfig } from 'vitest/config';
import { QUICK_RESOLVE } from './test/support/quick-start.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // More than cores: most of the time is spent waiting for clocks, time limits and processes.
    maxWorkers: 5,
    // No test changes what others share but databases, and those are their own: modules are loaded once per worker.
    isolate: false,
    execArgv: [`--import=${QUICK_RESOLVE}`],
  },
});
