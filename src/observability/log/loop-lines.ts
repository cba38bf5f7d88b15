import type { FirelockEvent } from '../../core/events.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { EventOf } from '../handlers.ts';
import type { Logger } from './logger.ts';

/** Says when a loop begins to fail, and when it works again. */
export function createLoopLog(logger: Logger): (event: FirelockEvent) => void {
  const failing = new Set<string>();
  return (event) => {
    if (event.type === 'loopFailed') loopFailed(logger, failing, event);
    else if (failing.size > 0) loopWorks(logger, failing, event);
  };
}

/** The first failure of a loop is a warning with all details; a line for each of the following ones would hide it. */
function loopFailed(
  logger: Logger,
  failing: Set<string>,
  { loop, error, retryInMs }: EventOf<'loopFailed'>,
): void {
  const fields = { loop, retryInMs, reason: reasonOf(error) };
  if (failing.has(loop)) logger.debug(fields, `${loop} failed again`);
  else logger.warn(fields, `${loop} failed; it will be tried again until it works`);
  failing.add(loop);
}

const SIGN_OF_LIFE: Partial<Record<FirelockEvent['type'], string>> = {
  heartbeat: 'heartbeat',
  tickFinished: 'tick',
  runsClaimed: 'dispatch',
  dispatchIdle: 'dispatch',
  runSettled: 'settle',
  settlementFenced: 'settle',
  migrationsApplied: 'migrations',
  gaugesSampled: 'gauges',
  recoveryFinished: 'recovery',
  effectsApplied: 'effects',
  backstopPassed: 'backstop',
  zoneWatchPassed: 'zone-watch',
  calendarWatchPassed: 'calendar-watch',
  queuesLookedAt: 'pull',
  pausesSeenTo: 'pause',
  latenessChecked: 'late-watch',
  pauseEndsChecked: 'pause-end',
  definitionsReadAhead: 'read-ahead',
  admissionPassed: 'admission',
  expiriesChecked: 'expiry',
  historyDropped: 'retention',
  partitionsCreated: 'partitions',
};

function loopWorks(logger: Logger, failing: Set<string>, { type }: FirelockEvent): void {
  const loop = SIGN_OF_LIFE[type];
  if (loop !== undefined && failing.delete(loop)) logger.info({ loop }, `${loop} works again`);
}
