import {
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_RETRY,
  DEFAULT_TIMEOUT_SECONDS,
  type Handoff,
} from './schedule.ts';

/** What holds for a run whose definition is not there, or cannot be read: it says nothing of how to try again. */
export const NO_DEFINITION = {
  retry: DEFAULT_RETRY,
  timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
  delivery: 'atLeastOnce',
  completion: 'response',
  completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
} as const satisfies Omit<Handoff, 'target' | 'payload'>;
