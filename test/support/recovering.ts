import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { FirelockEvent } from '../../src/core/events.ts';
import { createBackstop } from '../../src/recovery/backstop.ts';
import { createRecovery } from '../../src/recovery/recovery.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import type { Store, TestInstance } from './pipeline.ts';
import { until } from './until.ts';

/** The loops of recovery beside an instance's pipeline. */
interface Recovering {
  eventsOf<T extends FirelockEvent['type']>(type: T): Extract<FirelockEvent, { type: T }>[];
  /** Lets that much time pass between two of its looks, in its own eyes. */
  waits(ms: number): Promise<void>;
  stop(): Promise<void>;
}

export function startRecovery(
  store: Store,
  instance: TestInstance,
  overrides: Partial<Parameters<typeof createRecovery>[0]> = {},
): Recovering {
  const events: FirelockEvent[] = [];
  const bus = createEventBus();
  bus.subscribe((event) => void events.push(event));
  let ahead = 0;
  const common = {
    database: store.database,
    clock: { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + ahead },
    events: bus,
    intervalSeconds: 0.05,
    wake: instance.pipeline.wake,
  };
  const recovery = createRecovery({
    ...common,
    maxRecoveries: 3,
    maxRecoveryAgeSeconds: 86_400,
    lockTtlSeconds: 120,
    lease: instance.lease,
    lostAfterSeconds: 300,
    hasClaim: (runId, attempt) => instance.pipeline.dispatchers.hasClaim(runId, attempt),
    ...overrides,
  });
  const loops = [recovery, createBackstop({ ...common, ...overrides })];
  for (const loop of loops) void loop.start();
  const eventsOf: Recovering['eventsOf'] = (type) =>
    events.filter((event): event is Extract<FirelockEvent, { type: typeof type }> => event.type === type);
  // The look under way may have begun before.
  const looks = async () => {
    const wanted = loops.map((loop) => loop.passes() + 2);
    await until(() => loops.every((loop, index) => loop.passes() >= (wanted[index] ?? 0)) || null);
  };
  return {
    eventsOf,
    waits: async (ms) => {
      await looks();
      ahead += ms;
      await looks();
    },
    stop: async () => {
      for (const loop of loops) await loop.stop();
    },
  };
}

/** An instance that was declared dead. */
export async function deadInstance(store: Store): Promise<string> {
  const id = randomUUID();
  await store.database.run((db) =>
    registerUnlessObserving(db, { id, host: 'test', version: 'test', zoneData: 'test', ttlSeconds: 10 }),
  );
  await store.rows(sql`UPDATE instances SET died_at = clock_timestamp() WHERE id = ${id}`);
  return id;
}
