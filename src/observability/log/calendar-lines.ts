import { reasonOf } from '../../runtime/reason.ts';
import type { Lines } from '../handlers.ts';

/** Log lines about calendars. */
export const CALENDAR_LINES: Lines = {
  calendarWritten: (logger, { calendarId, change, version }) =>
    logger.info({ calendarId, version }, `calendar ${change}`),
  nextFiresMoved: (logger, { calendarId, version, schedules, moved }) =>
    logger.info(
      { calendarId, version, schedules, moved },
      'the next fires of all schedules that exclude this calendar follow its newest version',
    ),
  nextFiresNotMoved: (logger, { calendarId, scheduleId, error }) =>
    logger.warn(
      { calendarId, ...(scheduleId === null ? {} : { scheduleId }), reason: reasonOf(error) },
      'not all next fires could be moved after an edit of a calendar; it will be tried again until it works',
    ),
};
