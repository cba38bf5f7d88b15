import {
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_RETRY,
  DEFAULT_TIMEOUT_SECONDS,
  type Handoff,
} from './schedule.ts';

/** The rules for a run whose definition is missing, or cannot be read: it does not say how to try again. */
export const NO_DEFINITION = {
  retry: DEFAULT_RETRY,
  timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
  delivery: 'atLeastOnce',
  completion: 'response',
  completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
} as const satisfies Omit<Handoff, 'target' | 'payload'>;
