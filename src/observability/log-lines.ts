import { isoInstant } from '../core/instant.ts';
import type { FirelockEvent } from '../core/events.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Logger } from './logger.ts';

/** Turns events into log lines: what an operator acts on at info and above, each fire at debug. */
export function logEvents(events: EventBus, logger: Logger): void {
  const failing = new Set<string>();
  events.subscribe((event) => {
    if (event.type === 'loopFailed') {
      loopFailed(logger, failing, event);
    } else {
      loopWorks(logger, failing, event);
      logEvent(logger, event);
    }
  });
}

type Failed = Extract<FirelockEvent, { type: 'loopFailed' }>;

/** The first failure of a loop is a warning with all there is to know; those that follow would drown it. */
function loopFailed(logger: Logger, failing: Set<string>, { loop, error, retryInMs }: Failed): void {
  const again = failing.has(loop);
  failing.add(loop);
  const message = `${loop} failed; it will be tried again`;
  if (again) logger.debug({ loop, retryInMs, reason: reasonOf(error) }, message);
  else logger.warn({ loop, retryInMs, reason: reasonOf(error) }, message);
}

const SIGN_OF_LIFE: Partial<Record<FirelockEvent['type'], string>> = {
  heartbeat: 'heartbeat',
  tickFinished: 'tick',
  runsClaimed: 'dispatch',
  runSettled: 'settle',
  migrationsApplied: 'migrations',
  gaugesSampled: 'gauges',
};

function loopWorks(logger: Logger, failing: Set<string>, { type }: FirelockEvent): void {
  const loop = SIGN_OF_LIFE[type];
  if (loop !== undefined && failing.delete(loop)) logger.info({ loop }, `${loop} works again`);
}

function logEvent(logger: Logger, event: FirelockEvent): void {
  const told = detailsOf(event);
  switch (event.type) {
    case 'instanceRegistered':
      logger.info(told, 'registered as an instance');
      return;
    case 'instanceLeft':
      logger.info(told, 'left');
      return;
    case 'migrationsApplied':
      logger.info(told, event.count > 0 ? 'migrations applied' : 'schema is up to date');
      return;
    case 'scheduleWritten':
      logger.info(told, `schedule ${event.change}`);
      return;
    case 'scheduleSetAside':
      logger.error({ ...told, retryAt: isoInstant(event.retryAt) }, 'schedule cannot be planned; set aside');
      return;
    case 'fireLocks':
      if (event.outcome === 'fenced')
        logger.warn(told, 'fire-locks were lost while planning; nothing was written');
      else if (event.outcome === 'expired') logger.warn(told, 'took over fire-locks that nobody worked on');
      return;
    case 'intentsRecorded':
      if (event.coalesced > 0) logger.warn(told, 'missed fires were folded into one run each');
      else logger.debug(told, 'intents recorded');
      return;
    case 'runSettled':
      runSettled(logger, event);
      return;
    case 'settlementFenced':
      logger.warn(told, 'an outcome came too late: its claim was gone');
      return;
    case 'settlementRefused':
      logger.error(told, 'the database refused an outcome; settled without its body');
      return;
    case 'runsReturned':
      logger.info(told, 'unsent runs handed back');
      return;
    case 'gaugesSampled':
    case 'heartbeat':
    case 'tickFinished':
    case 'runsClaimed':
    case 'attemptEnded':
    case 'runStarted':
    case 'loopFailed':
      return;
  }
}

function detailsOf(event: FirelockEvent): object {
  return Object.fromEntries(Object.entries(event).filter(([name]) => name !== 'type'));
}

function runSettled(logger: Logger, event: Extract<FirelockEvent, { type: 'runSettled' }>): void {
  const { runId, scheduleId, attempt, settlement } = event;
  const { status, error, retryAt } = settlement;
  const told = {
    runId,
    scheduleId,
    attempt,
    error,
    ...(retryAt === null ? {} : { retryAt: isoInstant(retryAt) }),
  };
  if (status === 'failed') logger.warn(told, 'run failed');
  else if (status === 'pending') logger.info(told, 'attempt did not succeed; it will be tried again');
  else logger.debug(told, `run ${status}`);
}

/** What went wrong, with its cause: the driver's word is often one level down. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const first = error.message.split('\n')[0] ?? '';
  // The query builder's message is the whole statement; its cause says what is wrong.
  if (error.cause instanceof Error) return reasonOf(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return first === '' || first.includes(code) ? first || code : `${code}: ${first}`;
}
