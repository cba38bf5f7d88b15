import type { Registry } from 'prom-client';
import type { EventOf, Handlers } from '../handlers.ts';
import { metricsIn } from './metric-kinds.ts';

/** Messages of notifiers, which are runs, and count as such nowhere. */
export function messageHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const sent = counter('firelock_notifications_sent_total', 'Messages of notifiers that were delivered.');
  const failed = counter(
    'firelock_notifications_failed_total',
    'Messages of notifiers that ended without being delivered; /readyz and the log name the notifiers.',
  );
  const ended = ({ notifierId, settlement: { status } }: EventOf<'runSettled' | 'runCompleted'>) => {
    if (notifierId === null) return;
    if (status === 'succeeded') sent.inc();
    else if (status === 'failed' || status === 'unknown') failed.inc();
  };
  return {
    runSettled: ended,
    runCompleted: ended,
    runsTakenOver: ({ runs }) =>
      failed.inc(runs.filter(({ notifierId, verdict }) => notifierId !== null && verdict !== 'again').length),
  };
}
