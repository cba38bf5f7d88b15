import type { DeliveredRun } from '../load/delivery.ts';
import { type Evidence, type Faults, occurrenceOf } from './evidence.ts';

/**
 * A run may come again only if the instance that sent it before was killed after it was due, and before it came again. (What a dead
 * instance has sent may still be on its way: on a busy machine it arrives after the death.) Answers how often that was so; every other
 * repeat is a fault.
 */
export function checkRepeats({ deliveries, senders, kills }: Evidence, faults: Faults): number {
  const last = new Map<string, DeliveredRun>();
  let explained = 0;
  for (const delivery of deliveries) {
    const before = last.get(delivery.runId);
    last.set(delivery.runId, delivery);
    if (before === undefined) continue;
    const sender = senders.get(delivery.runId)?.find(({ attempt }) => attempt === before.attempt);
    const kill = kills.get(sender?.instanceId ?? '');
    const isExplained =
      kill !== undefined &&
      before.attempt !== delivery.attempt &&
      before.scheduledFor <= kill.to &&
      kill.from <= delivery.at;
    if (isExplained) explained += 1;
    else
      faults.repeated.push(`${occurrenceOf(delivery)}, attempts ${before.attempt} and ${delivery.attempt}`);
  }
  return explained;
}
