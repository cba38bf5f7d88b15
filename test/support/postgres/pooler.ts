import type { TestContext } from 'vitest';

/** `npm run test:pgbouncer` says so: the tests' server is reached through a pooler in transaction mode. */
export const THROUGH_POOLER = process.env['FIRELOCK_TEST_POOLER'] === '1';

/** Leaves a test out of a run through a pooler, visibly and with the reason. */
export function notThroughPooler(context: TestContext, reason: string): void {
  if (THROUGH_POOLER) context.skip(`not through a pooler: ${reason}`);
}
