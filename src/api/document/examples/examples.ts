import { OTHER_EXAMPLES } from './others.ts';
import { RUN_EXAMPLES } from './runs.ts';
import { SCHEDULE_EXAMPLES } from './schedules.ts';
import type { Examples } from './example.ts';

/** Whole bodies, by `operationId`. A test sends them in this order to an empty firelock: each works as it stands. */
export const EXAMPLES: Readonly<Record<string, Examples>> = {
  ...OTHER_EXAMPLES,
  ...SCHEDULE_EXAMPLES,
  ...RUN_EXAMPLES,
};
