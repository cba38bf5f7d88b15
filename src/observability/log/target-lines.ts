import type { Lines } from '../handlers.ts';

/** What happens between an instance and its targets, beside the outcomes of attempts. */
export const TARGET_LINES: Lines = {
  targetBlocked: (logger, { runId, scheduleId, attempt, origin, address, because }) =>
    logger.warn(
      { runId, scheduleId, attempt, origin, address, because },
      'a target was not called: its address is blocked (docs/security.md)',
    ),
  targetAsked: (logger, { runId, scheduleId, attempt, lookup }) =>
    logger.info({ runId, scheduleId, attempt }, LOOKED_UP[lookup]),
  targetCancelled: (logger, { runId, scheduleId, accepted, error }) => {
    if (accepted) logger.debug({ runId, scheduleId }, 'the target was told that the run is cancelled');
    else logger.warn({ runId, scheduleId, error }, 'the target could not be told that the run is cancelled');
  },
};

const LOOKED_UP = {
  arrived: 'the target was asked and has it: nothing is sent again',
  notArrived: 'the target was asked and does not have it',
  unclear: 'the target was asked and did not say whether it has it',
};
