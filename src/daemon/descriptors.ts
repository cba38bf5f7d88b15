import type { ConnectionLimits } from '../api/http/plugins/strangers.ts';
import type { Config } from '../config/config.ts';
import { MESSAGE_SLOTS } from '../flow/dispatch/dispatchers.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { descriptorLimit } from '../runtime/own-shortage.ts';

/** Heartbeats, LISTEN, the lock of a migration. */
const BESIDE_POOL = 3;
/** Files, pipes, listeners, and name servers. */
const OWN = 100;

/** Says how many file descriptors this process may need at once: of targets, as many connections are kept as are in use. */
export function countDescriptors(
  { dispatchConcurrency, databasePool }: Pick<Config, 'dispatchConcurrency' | 'databasePool'>,
  { most }: Pick<ConnectionLimits, 'most'>,
  events: Pick<EventBus, 'emit'>,
): void {
  const ofTargets = 2 * (dispatchConcurrency + MESSAGE_SLOTS.concurrency);
  const needed = ofTargets + databasePool + BESIDE_POOL + most + OWN;
  events.emit({ type: 'descriptorsCounted', needed, limit: descriptorLimit() });
}
