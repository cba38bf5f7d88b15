import { isoInstant } from '../../core/instant.ts';
import type { Lines } from '../handlers.ts';

/** Pauses that firelock itself begins or ends, and schedules that are late. */
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
  schedulesLate: (logger, { schedules }) => {
    for (const { scheduleId, since } of schedules)
      logger.warn(
        { scheduleId, since: isoInstant(since) },
        'a schedule is late: no run of it has succeeded in time',
      );
  },
  schedulesLateNoMore: (logger, { scheduleIds }) => {
    for (const scheduleId of scheduleIds)
      logger.info({ scheduleId }, 'a schedule is late no more: a run has succeeded');
  },
  lateLookRefused: (logger, { scheduleUid, error }) =>
    logger.error({ scheduleUid, error }, 'whether a schedule is late cannot be written; it is tried again'),
};
