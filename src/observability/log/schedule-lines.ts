import { isoInstant } from '../../core/instant.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type Lines, line } from '../handlers.ts';

/** Schedules, calendars, limits and connections: edits, pauses, and fires that are planned otherwise than their definition says. */
export const SCHEDULE_LINES: Lines = {
  schedulesWritten: (logger, { changes }) => {
    const [only, ...others] = changes;
    if (only && others.length === 0) {
      const { scheduleId, version, change } = only;
      logger.info({ scheduleId, version }, `schedule ${change}`);
      return;
    }
    logger.info({ count: changes.length }, 'schedules created or updated');
    for (const one of changes) logger.debug(one, `schedule ${one.change}`);
  },
  namedWritten: (logger, { noun, id, change, version }) =>
    logger.info({ [`${noun}Id`]: id, version }, `${noun} ${change}`),
  nextFiresMoved: line.info(
    'the next fires of all schedules that exclude this calendar follow its newest version',
  ),
  nextFiresNotMoved: (logger, { calendarId, scheduleId, error }) =>
    logger.warn(
      { calendarId, ...(scheduleId !== null && { scheduleId }), reason: reasonOf(error) },
      'some next fires could not be moved after an edit of a calendar; this is retried until it works',
    ),
  schedulePaused: line.warn(
    'firelock paused a schedule because its target is gone, or too many of its runs failed',
  ),
  pausesEnded: (logger, { changes }) => {
    for (const { scheduleId, version } of changes)
      logger.info(
        { scheduleId, version },
        'the pause of a schedule has ended; the schedule is enabled again',
      );
  },
  pauseNotEnded: line.error(
    'the pause of a schedule has ended, but the schedule could not be enabled; this is retried',
  ),
  schedulesLate: (logger, { schedules }) => {
    for (const { scheduleId, since } of schedules)
      logger.warn(
        { scheduleId, since: isoInstant(since) },
        'a schedule is late: no run of it has succeeded in time',
      );
  },
  schedulesLateNoMore: (logger, { scheduleIds }) => {
    for (const scheduleId of scheduleIds) logger.info({ scheduleId }, 'a schedule is no longer late');
  },
  alertsOpened: (logger, { alerts }) => {
    for (const { scheduleId, kind } of alerts) logger.warn({ scheduleId, kind }, 'an alert opened');
  },
  alertsClosed: (logger, { alerts }) => {
    for (const { scheduleId, kind } of alerts) logger.info({ scheduleId, kind }, 'an alert is over');
  },
  alertLookRefused: line.error('an alert or its message could not be written; this is retried'),
  firesMissed: line.warn(
    'fires were missed: when they were planned, they had been due for longer than their grace period',
  ),
  scheduleSetAside: (logger, { scheduleId, error, failures, retryAt }) =>
    logger.error(
      { scheduleId, error, failures, retryAt: isoInstant(retryAt) },
      'a schedule cannot be planned; it is set aside and retried later',
    ),
  fireLocks: (logger, { outcome, count }) => {
    if (outcome === 'fenced')
      logger.info(
        { count },
        'schedules were edited or taken over while they were planned; nothing was written for them',
      );
    else if (outcome === 'expired')
      logger.warn({ count }, 'took over fire-locks whose instance no longer works on them');
  },
  fireSkipAsked: (logger, { scheduleId, fireAt, skipped, reason }) =>
    logger.info(
      { scheduleId, fireAt: isoInstant(fireAt), reason },
      skipped
        ? 'a coming fire will be skipped, on request'
        : 'a coming fire will not be skipped any more, on request',
    ),
  cursorsMoved: line.info('the time zone data changed; next fires were moved accordingly'),
};
