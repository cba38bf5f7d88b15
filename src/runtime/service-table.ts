import type { Turning } from './loop/loop.ts';
import type { Service } from './service.ts';
import { within } from './within.ts';

/**
 * When a service stops. `claiming`: first, since it claims and locks. `work`: beside that, all background work at once.
 * `settling`: once no attempt is under way; until then it writes outcomes and keeps the lease. `last`: one after the other,
 * since all others need it.
 */
export type StopPhase = 'claiming' | 'work' | 'settling' | 'last';

export interface ServiceEntry {
  service: Service | Turning;
  /** Services of one kind start in the order of the table: at once, or as soon as the database has its schema. */
  starts: 'atOnce' | 'migrated';
  stops: StopPhase;
  /** How long the daemon waits for its end. After that, the end of the process cuts it off. */
  stopLimitMs: number;
}

export interface ServicesDeps {
  /** It could not stop; all the others stop as if it had. */
  onFailure: (service: string, error: unknown) => void;
  onOverdue: (service: string) => void;
}

/** A table of services: it says in which order they start and stop. */
interface Services {
  /** Rejects with the error of the first service that fails; later services do not start then, nor once anything stops. */
  start(when: ServiceEntry['starts']): Promise<void>;
  /**
   * Calls stop of all services of the phase before it returns; resolves when they have stopped, or their limits have
   * passed. Never rejects.
   */
  stop(phase: StopPhase): Promise<void>;
}

export function createServices(table: readonly ServiceEntry[], { onFailure, onOverdue }: ServicesDeps): Services {
  let stopping = false;

  async function stopOne({ service, stopLimitMs }: ServiceEntry): Promise<void> {
    // Called at once, so that the service knows of it, however long the others take.
    const stopped = (async () => {
      await service.stop();
    })().catch((error: unknown) => onFailure(service.name, error));
    if (!(await within(stopped, stopLimitMs))) onOverdue(service.name);
  }

  return {
    start: async (when) => {
      for (const { service, starts } of table) {
        if (stopping) return;
        if (starts === when) await service.start();
      }
    },
    stop: async (phase) => {
      stopping = true;
      const entries = table.filter(({ stops }) => stops === phase);
      if (phase === 'last') for (const entry of entries.reverse()) await stopOne(entry);
      else await Promise.all(entries.map(stopOne));
    },
  };
}

/** The loops whose turning can be watched. */
export function loopsOf(table: readonly ServiceEntry[]): Turning[] {
  return table.flatMap(({ service }) => ('passes' in service ? [service] : []));
}
