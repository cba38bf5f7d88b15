import type { RunExpired } from '../../core/events.ts';
import { isoInstant, isoOrNull } from '../../core/instant.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { Bound } from '../../core/schedules/expect.ts';
import { type EventOf, type Lines, line } from '../handlers.ts';
import type { Logger } from './logger.ts';

/** Runs, their attempts and their targets. */
export const RUN_LINES: Lines = {
  intentsRecorded: line.debug('fires recorded'),
  runsSkipped: line.debug('fires recorded as skipped'),
  runsAccepted: line.debug('one-off runs recorded'),
  pullRunsClaimed: line.debug('runs leased to a worker'),
  targetBlocked: line.warn('a target was not called: its address is blocked (docs/addresses.md)'),
  tokenServerBlocked: line.warn('a token server was not called: its address is blocked (docs/addresses.md)'),
  targetAsked: (logger, { runId, scheduleId, attempt, lookup }) =>
    logger.info({ runId, scheduleId, attempt }, LOOKED_UP[lookup]),
  targetCancelled: (logger, { runId, scheduleId, accepted, error }) => {
    if (accepted) logger.debug({ runId, scheduleId }, 'the target was told that the run is cancelled');
    else logger.warn({ runId, scheduleId, error }, 'the target could not be told that the run is cancelled');
  },
  runSettled: (logger, event) => {
    if (event.notifierId === null) logSettled(logger, event);
    else logMessage(logger, event, event.notifierId);
  },
  settlementFenced: (logger, { runId, scheduleId, attempt, outcome, statusCode, alreadyEnded }) => {
    const fields = { runId, scheduleId, attempt, outcome, statusCode };
    if (alreadyEnded) logger.debug(fields, 'an attempt ended after its run was replaced, or deleted with its schedule');
    else
      logger.warn(
        fields,
        'an outcome came too late: this instance has no claim on the run any more; only the attempt log has the outcome',
      );
  },
  settlementRefused: line.error('the database refused an outcome; it is saved without the response body'),
  batchHeldUp: line.info('another transaction has locked rows of a batch; the other rows of the batch are written'),
  runsReturned: (logger, { count, stopping }) => {
    if (stopping) logger.info({ count }, 'unsent runs handed back to the other instances');
    else logger.debug({ count }, 'runs that waited too long for a slot handed back to all instances');
  },
  runCompleted: (logger, { runId, scheduleId, attempt, settlement: { status, error, retryAt } }) => {
    if (status === 'pending')
      logger.info(
        { runId, scheduleId, attempt, error, retryAt: isoOrNull(retryAt) },
        'an attempt was reported as failed for now; another one follows',
      );
    else if (status === 'failed') logger.warn({ runId, scheduleId, attempt, error }, 'run reported as failed');
    else logger.debug({ runId, scheduleId, attempt }, `run reported as ${status}`);
  },
  runsCancelled: (logger, { reason, count, runId }) => {
    if (runId === undefined) logger.debug({ reason, count }, 'runs cancelled');
    else logger.info({ runId }, 'run cancelled on request');
  },
  runRetried: line.info('run opened again on request'),
  runsAbandoned: (logger, { reason, scheduleId, count }) =>
    logger.warn({ reason, ...(scheduleId !== null && { scheduleId }), count }, 'open runs abandoned'),
  dependentsFailed: line.warn('runs failed before their start because a run that they depend on did not succeed'),
  heldRunsReleased: line.info('runs that edits recorded during maintenance are released'),
  runsBroughtBack: line.warn('runs were written while the clock of the database was ahead; they go on as of now'),
  waitingReleased: line.warn('waiting runs had nothing left to wait for; they are released'),
  claimRefused: line.error(
    'a run cannot be claimed because the database refuses to write its row; it is retried later',
  ),
  admissionRefused: line.error('runs of a limit cannot get places because the database refuses to write a row'),
  effectPutOff: (logger, { kind, runId, scheduleId, error, failures, seconds }) =>
    logger.error(
      { kind, runId, scheduleId, error, failures, retryInSeconds: seconds },
      'what follows from the end of a run, an edit or a deletion failed; it will be retried',
    ),
  claimsDropped: line.warn('unsent claims dropped: other instances have taken these runs over'),
  runsTakenOver: (logger, { found, runs }) => {
    const count = (...verdicts: string[]) => runs.filter((run) => verdicts.includes(run.verdict)).length;
    const again = count('again');
    const unknown = count('unknown');
    const fields = { found, runs: runs.length, again, unknown, abandoned: runs.length - again - unknown };
    const instances = [...new Set(runs.map((run) => run.instanceId))];
    logger.warn(
      { ...fields, instances },
      'lost runs found: they are retried, or ended as this line and the next ones say',
    );
    for (const { runId, scheduleId, notifierId, instanceId, verdict } of runs) {
      const run = { runId, scheduleId, ...(notifierId !== null && { notifierId }), found, instanceId };
      if (notifierId !== null && verdict !== 'again')
        logger.error({ ...run, reason: verdict }, 'a message of a notifier was not delivered');
      else if (verdict === 'unknown') logger.error(run, 'a run was lost during its handoff; its outcome stays unknown');
      else if (verdict !== 'again') logger.error({ ...run, reason: verdict }, 'a lost run was abandoned');
    }
  },
  takeOverRefused: line.error('a lost run cannot be taken over because the database refuses to write its row'),
  runsUnmet: (logger, { runs }) => {
    for (const { runId, scheduleId, bound, passedAt } of runs) {
      const fields = { runId, scheduleId, passedAt: isoInstant(passedAt) };
      logger.warn(fields, UNMET[bound]);
    }
  },
  boundRefused: line.error('that a run did not keep a bound could not be recorded; this is retried'),
  runsExpired: (logger, { runs }) => logExpired(logger, runs),
  waitingExpired: line.warn('runs expired while they waited to be tried again'),
  expiryRefused: line.error(
    'a run that was silent, or waited, for too long cannot be retried or ended because the database refuses to write its row',
  ),
};

function logSettled(logger: Logger, event: EventOf<'runSettled'>): void {
  const { runId, scheduleId, attempt, settlement } = event;
  const { status, error, retryAt, inDoubt } = settlement;
  const fields = { runId, scheduleId, attempt, error };
  if (status === 'failed') logger.warn(fields, 'run failed');
  else if (status === 'unknown') logger.warn(fields, 'the outcome of a run stays unknown; the run is not repeated');
  else if (status !== 'pending') logger.debug({ runId, scheduleId, attempt }, `run ${status}`);
  else
    logger.info(
      { ...fields, retryAt: isoOrNull(retryAt) },
      inDoubt
        ? 'an attempt may have arrived; the target is asked before anything is sent again'
        : 'an attempt failed; another one follows',
    );
}

function logMessage(logger: Logger, event: EventOf<'runSettled'>, notifierId: string): void {
  const { runId, attempt, settlement } = event;
  const { status, error, retryAt } = settlement;
  const fields = { notifierId, runId, attempt };
  if (status === 'succeeded') logger.info(fields, 'a message of a notifier was delivered');
  else if (status === 'pending')
    logger.warn(
      { ...fields, error, retryAt: isoOrNull(retryAt) },
      'a message of a notifier could not be delivered; another attempt follows',
    );
  else logger.error({ ...fields, error }, 'a message of a notifier was not delivered');
}

const UNMET: Record<Bound, string> = {
  start: 'a run did not begin in the time that its schedule expects',
  finish: 'a run did not end in the time that its schedule expects',
  tooFast: 'a run succeeded sooner than its schedule expects',
  result: 'a run succeeded, and its result is not what its schedule expects',
};

const LOOKED_UP = {
  arrived: 'the target was asked and has the run: nothing is sent again',
  notArrived: 'the target was asked and does not have the run',
  unclear: 'the target was asked and did not say whether it has the run',
};

const MAX_NAMED = 10;

/**
 * One warning for all runs that a dead worker left; below that level a line for each, except for runs about which
 * nothing more is done.
 */
function logExpired(logger: Logger, runs: readonly RunExpired[]): void {
  const count = (status: RunStatus) => runs.filter(({ settlement }) => settlement.status === status).length;
  const workers = [...new Set(runs.flatMap(({ workerId }) => workerId ?? []))].slice(0, MAX_NAMED);
  const became = { again: count('pending'), failed: count('failed'), unknown: count('unknown') };
  if (runs.length > 1)
    logger.warn(
      { runs: runs.length, ...became, workers },
      'no worker or target reported on these runs in time: they are retried, or ended as this line says',
    );
  for (const { settlement, ...run } of runs) {
    const { status, error, retryAt, inDoubt } = settlement;
    const fields = { ...run, error };
    if (status === 'failed')
      logger.warn(fields, 'run failed: its worker or target did not report in time, and no attempt is left');
    else if (status === 'unknown')
      logger.warn(
        fields,
        'the outcome of a run stays unknown: its worker or target did not report in time, and the run is not repeated',
      );
    else
      logger[runs.length > 1 ? 'info' : 'warn'](
        { ...fields, retryAt: isoOrNull(retryAt) },
        `the worker or target of a run did not report in time; ${inDoubt ? 'the target is asked what became of it' : 'another attempt follows'}`,
      );
  }
}
