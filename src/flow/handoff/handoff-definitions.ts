/**
 * Guarantees: an attempt uses the definition of the version its run was planned under.
 * Transaction: reads only. Versions never change, so what was read once may be kept.
 * If the process dies here: nothing was written.
 */
import { LRUCache } from 'lru-cache';
import type { Handoff } from '../../core/schedules/schedule.ts';
import type { Database } from '../../postgres/database.ts';
import { type VersionKey, loadHandoffs, versionKey } from '../../store/schedules/load-handoffs.ts';

export interface HandoffDefinitions {
  known(key: VersionKey): Handoff | undefined;
  /** Reads what is not known of these; answers all of them that exist, also those too many to be kept. */
  load(keys: readonly VersionKey[]): Promise<ReadonlyMap<string, Handoff>>;
}

const MAX_KEPT = 20_000;
const MAX_BYTES_KEPT = 32 * 1024 * 1024;
/** About what a definition weighs beside its payload. */
const DEFINITION_BYTES = 1_000;

export function createHandoffDefinitions(database: Database): HandoffDefinitions {
  const kept = new LRUCache<string, Handoff>({
    max: MAX_KEPT,
    maxSize: MAX_BYTES_KEPT,
    sizeCalculation: (handoff) => DEFINITION_BYTES + (handoff.payload?.length ?? 0),
  });
  return {
    known: (key) => kept.get(versionKey(key)),
    load: async (keys) => {
      const found = new Map<string, Handoff>();
      const missing = new Map<string, VersionKey>();
      for (const key of keys) {
        const name = versionKey(key);
        const handoff = kept.get(name);
        if (handoff) found.set(name, handoff);
        else missing.set(name, key);
      }
      if (missing.size === 0) return found;
      for (const [name, handoff] of await database.run((db) => loadHandoffs(db, [...missing.values()]))) {
        kept.set(name, handoff);
        found.set(name, handoff);
      }
      return found;
    },
  };
}
