import type { FirelockEvent } from '../../core/events.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { EventOf } from '../handlers.ts';
import type { Logger } from './logger.ts';

/** Says when a loop begins to fail, and when it works again. */
export function createLoopLog(logger: Logger): (event: FirelockEvent) => void {
  const failing = new Set<string>();
  return (event) => {
    if (event.type === 'loopFailed') loopFailed(logger, failing, event);
    else if (event.type === 'loopPassed' && failing.delete(event.loop))
      logger.info({ loop: event.loop }, `${event.loop} works again`);
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
