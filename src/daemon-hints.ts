import type { Workers } from './daemon-parts.ts';
import { listen } from './postgres/connection/connection.ts';
import { MAINTENANCE_CHANGED } from './store/maintenance/maintenance-row.ts';
import { WORK_FOR_PULL } from './store/queues/queue-workers.ts';
import { RUNS_RETURNED } from './store/runs/claims/held-claims.ts';
import { SCHEDULES_CHANGED } from './store/schedules/write-schedules.ts';

type Woken = Pick<Workers, 'tick' | 'pauseEnder' | 'dispatcher' | 'pullQueues' | 'heartbeat'>;

/** Wakes the loops that have work because of what another instance did. If a hint is lost, the work only waits longer. */
export function listenForHints(databaseUrl: string, workers: Woken): { stop: () => Promise<void> } {
  const { tick, pauseEnder, dispatcher, pullQueues, heartbeat } = workers;
  return listen(databaseUrl, {
    [SCHEDULES_CHANGED]: () => [tick, pauseEnder].forEach((loop) => loop.wake()),
    [RUNS_RETURNED]: () => dispatcher.wake(),
    [WORK_FOR_PULL]: () => pullQueues.wake(),
    [MAINTENANCE_CHANGED]: () => heartbeat.wake(),
  });
}
