import type { Clock } from '../runtime/clock.ts';
import type { DatabaseClock } from '../runtime/database-clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import type { Database } from '../store/database.ts';
import { type Instance, beatIfAlive, registerInstance } from '../store/instances.ts';

export interface HeartbeatDeps {
  database: Database;
  clock: Clock;
  databaseClock: DatabaseClock;
  events: EventBus;
  instance: Instance;
  intervalSeconds: number;
  ttlSeconds: number;
}

export interface Heartbeat extends Loop {
  /** The others may count on this instance: its last answered heartbeat was sent less than the TTL − 2 s ago. */
  leaseValid(): boolean;
}

/** How much earlier than the others this instance stops counting on its own lease. */
const MARGIN_SECONDS = 2;

/** Registers the instance, then says every few seconds that it lives. */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { database, clock, databaseClock, events, instance, intervalSeconds, ttlSeconds } = deps;
  let lastSentAt = -Infinity;

  async function beat(): Promise<number> {
    const sentAt = clock.monotonic();
    const at = await database.run((db) => beatIfAlive(db, instance.id));
    if (at === null) throw new Error(`instance ${instance.id} is not listed as living any more`);
    databaseClock.sample(at, sentAt);
    lastSentAt = sentAt;
    events.emit({ type: 'heartbeat', roundTripMs: clock.monotonic() - sentAt });
    return intervalSeconds * 1000;
  }

  const loop = createLoop({
    name: 'heartbeat',
    clock,
    body: beat,
    events,
  });

  return {
    ...loop,
    start: async () => {
      // Before anything else works: the locks and claims of an instance that is not listed are anybody's.
      await database.run((db) => registerInstance(db, instance));
      const { id: instanceId, host, zoneData } = instance;
      events.emit({ type: 'instanceRegistered', instanceId, host, zoneData });
      await loop.start();
    },
    leaseValid: () => clock.monotonic() - lastSentAt < (ttlSeconds - MARGIN_SECONDS) * 1000,
  };
}
