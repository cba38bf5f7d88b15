import type { Lines } from './handlers.ts';

/** What firelock itself does about pauses. */
export const PAUSE_LINES: Lines = {
  schedulePaused: (logger, { scheduleId, reason }) =>
    logger.warn({ scheduleId, reason }, 'a schedule was paused: nothing would come of its runs'),
  pausesEnded: (logger, { changes }) => {
    for (const { scheduleId, version } of changes)
      logger.info({ scheduleId, version }, 'the pause of a schedule is over; it is enabled again');
  },
  pauseNotEnded: (logger, { scheduleId, error }) =>
    logger.error(
      { scheduleId, error },
      'the pause of a schedule is over and it cannot be enabled; it is tried again',
    ),
};
