import { OTHER_EXAMPLES } from './others.ts';
import { RUN_EXAMPLES } from './runs.ts';
import { SCHEDULE_EXAMPLES } from './schedules.ts';
import type { Examples } from './example.ts';

/**
 * Whole bodies, by `operationId`. Sent in this order to a firelock that has nothing yet, each of them works as it stands: a
 * test does that.
 */
export const EXAMPLES: Readonly<Record<string, Examples>> = {
  ...OTHER_EXAMPLES,
  ...SCHEDULE_EXAMPLES,
  ...RUN_EXAMPLES,
};
