import { type Instant, isoInstant } from '../core/instant.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Lines } from './handlers.ts';

const KEPT = {
  open: 'a day that is older than history is kept stays: runs of it are open',
  needed: 'a day that is older than history is kept stays: open runs have still to be told of some of it',
  locked: 'a day that is older than history is kept stays for now: somebody reads or writes runs without end',
};

export const HISTORY_LINES = {
  historyDropped: (logger, { days, definitions }) => {
    if (days.length + definitions === 0) return;
    const runs = days.reduce((sum, day) => sum + day.runs, 0);
    const dropped = days.map(({ day }) => lastDayOf(day));
    logger.info({ days: dropped, runs, definitions }, 'dropped what is older than history is kept');
  },
  dayKept: (logger, { day, because, count, runs }) => {
    const told = { day: lastDayOf(day), because, count, runs };
    if (because === 'endedLate') logger.debug(told, 'a day stays a while, since some of it ended later');
    else logger.warn(told, KEPT[because]);
  },
  daysMade: (logger, { days, ahead }) => {
    if (days.length > 0)
      logger.debug({ days: days.map(dateOf), ahead }, 'days of history were given tables of their own');
  },
  dayNotMade: (logger, { day, runs }) =>
    logger.info(
      { day: dateOf(day), runs },
      'so many runs of a coming day stand in the default partition that it gets no tables of its own; they are dropped row by row',
    ),
  historyDelayed: (logger, { work, day, error, forMs, lasts }) => {
    const told = { day: work === 'drop' ? lastDayOf(day) : dateOf(day), reason: reasonOf(error) };
    if (lasts)
      logger.warn(
        { ...told, minutes: Math.round(forMs / 60_000) },
        'a day of history cannot be given tables of its own, since somebody is in the way; it is tried again, and all works on',
      );
    else
      logger.debug(told, `a day could not be ${work === 'make' ? 'made' : 'dropped'} now; again in a while`);
  },
} satisfies Lines;

function lastDayOf(end: Instant): string {
  return dateOf(end - 1);
}

function dateOf(at: Instant): string {
  return isoInstant(at).slice(0, 10);
}
