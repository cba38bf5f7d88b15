import type { FirelockEvent } from '../../core/events.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Logger } from './logger.ts';

/**
 * Says once per outage that handoffs are not begun, and at the next heartbeat how many there were. While the database is away, every
 * claim that has waited for long fails like this, thousands of them within a second.
 */
export function createUnbegunLog(logger: Logger): (event: FirelockEvent) => void {
  let count = 0;
  return (event) => {
    if (event.type === 'handoffsNotStarted') {
      const fields = { count: event.count, reason: reasonOf(event.error) };
      const message = 'handoffs not begun: it could not be written that they begin';
      if (count === 0) logger.warn(fields, message);
      else logger.debug(fields, message);
      count += event.count;
    } else if (event.type === 'heartbeat' && count > 0) {
      logger.info({ count }, 'so many handoffs had not begun; their runs are tried again');
      count = 0;
    }
  };
}
