import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // More than cores: most of the time is spent waiting for clocks, time limits and processes.
    maxWorkers: 5,
  },
});
