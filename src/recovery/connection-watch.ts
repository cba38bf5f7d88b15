/**
 * Guarantees: where the server gives fewer connections than this instance would take, each of its purposes gets one before any gets
 *   another, in the order of what fires; and as many stay free as another instance needs to begin with.
 * Transaction: one statement.
 * If the process dies here: the server ends its sessions.
 */
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import type { ConnectionBudget } from '../postgres/connection-budget.ts';
import type { Database } from '../postgres/database.ts';
import { freeConnections } from '../postgres/free-connections.ts';

interface ConnectionWatchDeps {
  clock: Clock;
  events: EventBus;
  budget: ConnectionBudget;
  pools: Record<'main' | 'heartbeat' | 'api' | 'background', Database>;
}

const EVERY_MS = 5_000;

export function createConnectionWatch({ clock, events, budget, pools }: ConnectionWatchDeps): Loop {
  /** In the order in which they get their first connections. */
  const purposes = [
    ['the tick', pools.main],
    ['heartbeats', pools.heartbeat],
    ['the API', pools.api],
    ['background work', pools.background],
  ] as const;

  async function openFirsts(): Promise<void> {
    const failures: unknown[] = [];
    const without: string[] = [];
    for (const [purpose, pool] of purposes) {
      await pool.open?.().catch((error: unknown) => {
        failures.push(error);
        without.push(purpose);
      });
    }
    events.emit({ type: 'connectionsOpened', without });
    if (failures.length > 0) throw failures[0];
  }

  async function look(): Promise<number> {
    await openFirsts();
    budget.learnFree(await pools.background.run(freeConnections));
    return EVERY_MS;
  }

  const loop = createLoop({ name: 'connections', clock, events, body: look });
  return {
    ...loop,
    start: async () => {
      // Before anything else takes them; the loop tries again what fails here.
      await openFirsts().catch(() => undefined);
      await loop.start();
    },
  };
}
