import { lastingTrouble } from '../../core/database-trouble.ts';
import type { FirelockEvent } from '../../core/events.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type EventOf, type Lines, line } from '../handlers.ts';
import { INSTANCE_LINES } from './instance-lines.ts';
import type { Logger } from './logger.ts';
import { RUN_LINES } from './run-lines.ts';
import { isoInstant } from '../../core/instant.ts';

/** Turns events into log lines: events on which an operator acts at info and above, each fire at debug. */
export function logEvents(events: EventBus, logger: Logger, clock: Pick<Clock, 'monotonic'> = systemClock): void {
  const said: Said = {
    ...{ failing: new Set(), troubles: new Map(), notStarted: 0, states: new Map() },
    now: () => clock.monotonic(),
  };
  events.subscribe((event) => LINES[event.type]?.(logger, event, said));
}

/** What the log has said of things that are logged when they change, and not with every event. */
interface Said {
  /** Loops whose last pass failed. */
  failing: Set<string>;
  /** When each trouble of the database that lasts was said last. */
  troubles: Map<string, number>;
  now: () => number;
  /** Handoffs since the last heartbeat. */
  notStarted: number;
  /** What was wrong by the last sample of each kind; empty: nothing. */
  states: Map<string, string>;
}

type ChangeLines = {
  [T in FirelockEvent['type']]?: (logger: Logger, event: EventOf<T>, said: Said) => void;
};

const CHANGE_LINES: ChangeLines = {
  /** The first failure of a loop is a warning with all details; a line for each of the following ones would hide it. */
  loopFailed: (logger, { loop, error, retryInMs }, said) => {
    const { failing } = said;
    sayTrouble(logger, error, said);
    const fields = { loop, retryInMs, reason: reasonOf(error) };
    if (failing.has(loop)) logger.debug(fields, `the ${loop} loop failed again`);
    else logger.warn(fields, `the ${loop} loop failed; it is retried until it works`);
    failing.add(loop);
  },
  databaseFailed: (logger, { error }, said) => sayTrouble(logger, error, said),
  loopPassed: (logger, { loop }, { failing }) => {
    if (failing.delete(loop)) logger.info({ loop }, `the ${loop} loop works again`);
  },
  /**
   * A warning once per outage, and the number at the next heartbeat: while the database is away, every claim that has
   * waited for long fails like this, thousands of them within a second.
   */
  handoffsNotStarted: (logger, { count, error }, said) => {
    const level = said.notStarted === 0 ? 'warn' : 'debug';
    logger[level](
      { count, reason: reasonOf(error) },
      'handoffs cannot start because the database does not record their start; their runs will be retried',
    );
    said.notStarted += count;
  },
  heartbeat: (logger, _event, said) => {
    if (said.notStarted === 0) return;
    logger.info({ count: said.notStarted }, 'handoffs could not start during the outage; their runs will be retried');
    said.notStarted = 0;
  },
  gaugesSampled: (logger, { zoneData: versions }, said) => {
    // As far as the database knows, no instance lives: then nothing is known about them either.
    if (versions.length === 0) return;
    const changed = changeOf(said, 'zoneData', versions.length > 1 ? versions : []);
    if (changed === 'wrong')
      logger.warn(
        { zoneData: versions },
        'living instances have different time zone data and may plan fires at different times in zones whose rules differ; finish the rollout',
      );
    else if (changed === 'over')
      logger.info({ zoneData: versions[0] }, 'all living instances have the same time zone data again');
  },
  secretKeysSampled: (logger, { missing: keyIds }, said) => {
    const changed = changeOf(said, 'secretKeys', keyIds);
    if (changed === 'wrong')
      logger.error(
        { keyIds },
        'schedules or connections have secrets that are encrypted with keys missing in FIRELOCK_SECRET_KEYS; their targets cannot be called (docs/secrets.md)',
      );
    else if (changed === 'over') logger.info('all stored secrets can be decrypted again');
  },
  schedulesAheadCounted: (logger, { schedules }, said) => {
    if (changeOf(said, 'ahead', schedules > 0 ? ['some'] : []) === 'wrong')
      logger.warn(
        { schedules },
        'schedules were planned while the clock of the database was ahead, and are silent until it comes there again; `firelock resume --from-now` sets them back',
      );
  },
  /** Of messages that were not delivered, each has a line of its own. */
  notifiersSampled: (logger, { notifiers: { waiting: notifierIds } }, said) => {
    const changed = changeOf(said, 'notifiers', notifierIds);
    if (changed === 'wrong')
      logger.warn({ notifierIds }, 'messages of notifiers have waited for longer than five minutes');
    else if (changed === 'over') logger.info('no message of a notifier waits for long any more');
  },
};

/** What a sample says that is news; null: nothing. */
function changeOf({ states }: Said, kind: string, wrong: readonly string[]): 'wrong' | 'over' | null {
  const [before = '', now] = [states.get(kind), wrong.join(', ')];
  states.set(kind, now);
  if (now === before) return null;
  return now === '' ? 'over' : 'wrong';
}

const SAY_AGAIN_MS = 60_000;

/** Whoever looks at the log an hour later must still see why nothing fires. */
function sayTrouble(logger: Logger, error: unknown, { troubles, now }: Said): void {
  const trouble = lastingTrouble(error);
  if (trouble === null || now() - (troubles.get(trouble) ?? -Infinity) < SAY_AGAIN_MS) return;
  troubles.set(trouble, now());
  logger.error({ reason: reasonOf(error) }, `${trouble}: firelock tries again until somebody mends that`);
}

/** Schedules, calendars, limits and connections: edits, pauses, and fires that are planned otherwise than their definition says. */
const SCHEDULE_LINES: Lines = {
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
  nextFiresMoved: line.info('the next fires of all schedules that exclude this calendar follow its newest version'),
  nextFiresNotMoved: (logger, { calendarId, scheduleId, error }) =>
    logger.warn(
      { calendarId, ...(scheduleId !== null && { scheduleId }), reason: reasonOf(error) },
      'some next fires could not be moved after an edit of a calendar; this is retried until it works',
    ),
  schedulePaused: line.warn('firelock paused a schedule because its target is gone, or too many of its runs failed'),
  pausesEnded: (logger, { changes }) => {
    for (const { scheduleId, version } of changes)
      logger.info({ scheduleId, version }, 'the pause of a schedule has ended; the schedule is enabled again');
  },
  pauseNotEnded: line.error(
    'the pause of a schedule has ended, but the schedule could not be enabled; this is retried',
  ),
  schedulesLate: (logger, { schedules }) => {
    for (const { scheduleId, since } of schedules)
      logger.warn({ scheduleId, since: isoInstant(since) }, 'a schedule is late: no run of it has succeeded in time');
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
      skipped ? 'a coming fire will be skipped, on request' : 'a coming fire will not be skipped any more, on request',
    ),
  cursorsMoved: line.info('the time zone data changed; next fires were moved accordingly'),
};

/** Events that have no line here are for the metrics only. */
const LINES = { ...RUN_LINES, ...SCHEDULE_LINES, ...INSTANCE_LINES, ...CHANGE_LINES } as Partial<
  Record<string, (logger: Logger, event: FirelockEvent, said: Said) => void>
>;
