import { type Instant, isoInstant } from '../../core/instant.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Lines } from '../handlers.ts';

export const HISTORY_LINES = {
  historyDropped: (logger, { days, definitions }) => {
    if (days.length + definitions === 0) return;
    logger.info({ days: days.map(dateOf), definitions }, 'dropped history that is older than the retention');
  },
  partitionsCreated: (logger, { days }) => {
    if (days.length > 0)
      logger.debug({ days: days.map(dateOf) }, 'created partitions of history for coming days');
  },
  historyDelayed: (logger, { work, day, error, forMs, lasts }) => {
    const fields = { day: dateOf(day), reason: reasonOf(error) };
    if (lasts)
      logger.warn(
        { ...fields, minutes: Math.round(forMs / 60_000) },
        'a partition of history cannot be created, since another transaction is in the way; it is tried again, and all works on',
      );
    else logger.debug(fields, `could not ${work} a partition of history now; it is tried again`);
  },
} satisfies Lines;

function dateOf(at: Instant): string {
  return isoInstant(at).slice(0, 10);
}
