import type { FirelockEvent } from '../../core/events.ts';
import { isoInstant } from '../../core/instant.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import { ACCESS_LINES } from './access-lines.ts';
import { CALENDAR_LINES } from './calendar-lines.ts';
import type { Lines } from '../handlers.ts';
import { HISTORY_LINES } from './history-lines.ts';
import { createLoopLog } from './loop-lines.ts';
import type { Logger } from './logger.ts';
import { MAINTENANCE_LINES } from './maintenance-lines.ts';
import { PAUSE_LINES } from './pause-lines.ts';
import { RECOVERY_LINES } from './recovery-lines.ts';
import { secretKeysLogger } from './secret-lines.ts';
import { TARGET_LINES } from './target-lines.ts';
import { TRACE_LINES } from './trace-lines.ts';
import { createUnbegunLog } from './unbegun-lines.ts';

/** Turns events into log lines: events on which an operator acts at info and above, each fire at debug. */
export function logEvents(events: EventBus, logger: Logger): void {
  const logLoops = createLoopLog(logger);
  const logUnbegun = createUnbegunLog(logger);
  const logZoneData = zoneDataLogger(logger);
  const logSecretKeys = secretKeysLogger(logger);
  const lines = LINES as Partial<Record<string, (logger: Logger, event: FirelockEvent) => void>>;
  events.subscribe((event) => {
    logLoops(event);
    logUnbegun(event);
    if (event.type === 'gaugesSampled') logZoneData(event.zoneData);
    if (event.type === 'secretKeysSampled') logSecretKeys(event.missing);
    lines[event.type]?.(logger, event);
  });
}

/** Logged when it changes, not with every sample. */
function zoneDataLogger(logger: Logger): (versions: readonly string[]) => void {
  let mixed = '';
  return (versions) => {
    const now = versions.length > 1 ? versions.join(', ') : '';
    if (now !== '' && now !== mixed) {
      logger.warn(
        { zoneData: versions },
        'living instances have different time zone data: where the rules of a zone differ, so may the fires they plan; finish the rollout',
      );
    } else if (versions.length === 1 && mixed !== '') {
      logger.info({ zoneData: versions[0] }, 'all living instances have the same time zone data again');
    }
    // As far as the database knows, no instance lives: then nothing is known about them either.
    if (versions.length > 0) mixed = now;
  };
}

/** Events that have no line here are for the metrics only. */
const LINES: Lines = {
  ...HISTORY_LINES,
  ...ACCESS_LINES,
  ...MAINTENANCE_LINES,
  ...PAUSE_LINES,
  ...CALENDAR_LINES,
  ...RECOVERY_LINES,
  ...TARGET_LINES,
  ...TRACE_LINES,
  instanceRegistered: (logger, { instanceId, host, zoneData }) =>
    logger.info({ instanceId, host, zoneData }, 'registered as an instance'),
  instanceReplaced: (logger, { instanceId, previousId }) =>
    logger.warn(
      { instanceId, previousId },
      'the others had declared this instance dead (it was frozen, or cut off from the database); it goes on under a new id',
    ),
  databaseWentBack: (logger, { lostMs }) =>
    logger.error(
      { lostMs },
      'the database has lost commits that it had confirmed (a failover, or a restored backup): fires of the lost time are planned again under their old ids; see docs/restoring.md',
    ),
  instanceLeft: (logger, { instanceId, unfinished, cutOff }) => {
    const fields = { instanceId, unfinished, cutOff };
    if (unfinished + cutOff > 0) logger.warn(fields, 'left before everything under way had ended');
    else logger.info({ instanceId }, 'left');
  },
  migrationsApplied: (logger, { count }) =>
    logger.info({ count }, count > 0 ? 'migrations applied' : 'the schema is up to date'),
  migrationWaits: (logger, { wait }) =>
    logger.warn(
      wait,
      'a migration waits for a transaction that uses its table; the version before goes on meanwhile, and this one starts when it has ended',
    ),
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
  limitWritten: (logger, { limitId, change, maxRunning }) =>
    logger.info({ limitId, ...(maxRunning === null ? {} : { maxRunning }) }, `limit ${change}`),
  runsAbandoned: (logger, { reason, scheduleId, count }) =>
    logger.warn(
      { reason, ...(scheduleId === null ? {} : { scheduleId }), count },
      'open runs were abandoned',
    ),
  firesMissed: (logger, { schedules, scheduleIds, caughtUp, folded, skipped }) =>
    logger.warn(
      { schedules, scheduleIds, caughtUp, folded, skipped },
      'fires were missed: due for longer than their grace when they were planned',
    ),
  scheduleSetAside: (logger, { scheduleId, error, failures, retryAt }) =>
    logger.error(
      { scheduleId, error, failures, retryAt: isoInstant(retryAt) },
      'a schedule cannot be planned; it is set aside',
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
  intentsRecorded: (logger, { fires, claimed }) => logger.debug({ fires, claimed }, 'intents recorded'),
  runsSkipped: (logger, { reason, count }) =>
    logger.debug({ reason, count }, 'fires were recorded as skipped'),
  fireSkipAsked: (logger, { scheduleId, fireAt, skipped, reason }) =>
    logger.info(
      { scheduleId, fireAt: isoInstant(fireAt), reason },
      skipped ? 'a fire is going to be skipped, as asked for' : 'a fire is not going to be skipped after all',
    ),
  cursorsMoved: (logger, { count, zoneData }) =>
    logger.info(
      { count, zoneData },
      'the time zone data in use have changed: next fires were moved to where these put them',
    ),
  pullRunsClaimed: (logger, { queue, workerId, count }) =>
    logger.debug({ queue, workerId, count }, 'runs were leased to a worker'),
  runsCancelled: (logger, { reason, count, runId }) => {
    if (runId === undefined) logger.debug({ reason, count }, 'runs were cancelled');
    else logger.info({ runId }, 'a run was cancelled on request');
  },
  runsAccepted: (logger, { count }) => logger.debug({ count }, 'one-off runs recorded'),
  dependentsFailed: (logger, { count, runIds }) =>
    logger.warn({ count, runIds }, 'runs failed unstarted: what they depend on did not succeed'),
  runRetried: (logger, { runId, scheduleId, was }) =>
    logger.info({ runId, scheduleId, was }, 'a run was opened again on request'),
  runCompleted: (logger, { runId, scheduleId, attempt, settlement: { status, error } }) => {
    if (status === 'failed') logger.warn({ runId, scheduleId, attempt, error }, 'run reported as failed');
    else logger.debug({ runId, scheduleId, attempt }, `run reported as ${status}`);
  },
  effectPutOff: (logger, { kind, runId, scheduleId, error, failures, seconds }) =>
    logger.error(
      { kind, runId, scheduleId, error, failures, retryInSeconds: seconds },
      'what is to follow from an end, an edit or a deletion could not be done; it is tried again',
    ),
  claimRefused: (logger, { runId, error }) =>
    logger.error(
      { runId, error },
      'a run cannot be claimed: the database refuses to write its row; it is tried again in a minute',
    ),
  admissionRefused: (logger, { limitId, error }) =>
    logger.error(
      { limitId, error },
      'runs of a limit cannot be given places: what stands in a row is refused',
    ),
  runSettled: (logger, { runId, scheduleId, attempt, settlement: { status, error, retryAt, uncertain } }) => {
    if (status === 'failed') logger.warn({ runId, scheduleId, attempt, error }, 'run failed');
    else if (status === 'unknown') {
      logger.warn(
        { runId, scheduleId, attempt, error },
        'the outcome of a run stays unknown; it is not repeated',
      );
    } else if (status !== 'pending') logger.debug({ runId, scheduleId, attempt }, `run ${status}`);
    else {
      const at = retryAt === null ? null : isoInstant(retryAt);
      const follows = uncertain
        ? 'an attempt may have arrived; the target is asked before anything else is done'
        : 'an attempt did not succeed; another follows';
      logger.info({ runId, scheduleId, attempt, error, retryAt: at }, follows);
    }
  },
  settlementFenced: (logger, { runId, scheduleId, attempt, outcome, statusCode, alreadyEnded }) => {
    const fields = { runId, scheduleId, attempt, outcome, statusCode };
    if (alreadyEnded)
      logger.debug(fields, 'an attempt ended of a run that was replaced, or went with its schedule');
    else logger.warn(fields, 'an outcome came too late: its claim was gone; it is in the attempt log');
  },
  batchHeldUp: (logger, { loop, count }) =>
    logger.info(
      { loop, count },
      'another transaction holds a row that was to be written; the other rows are written',
    ),
  settlementRefused: (logger, { runId, error }) =>
    logger.error({ runId, error }, 'the database refused an outcome; it is settled without its body'),
  runsReturned: (logger, { count, stopping }) => {
    if (stopping) logger.info({ count }, 'unsent runs handed back');
    else logger.debug({ count }, 'runs that have waited long for a slot handed back');
  },
};
