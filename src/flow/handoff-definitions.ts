/**
 * Guarantees: an attempt uses the definition of the version its run was planned under.
 * Transaction: reads only. Versions never change, so what was read once may be kept.
 * If the process dies here: nothing was written.
 */
import { LRUCache } from 'lru-cache';
import type { Handoff } from '../core/schedule.ts';
import type { Database } from '../store/database.ts';
import { type VersionKey, loadHandoffs, versionKey } from '../store/handoffs.ts';

export interface HandoffDefinitions {
  known(key: VersionKey): Handoff | undefined;
  /** Reads what is not known of these; what does not exist stays unknown. */
  load(keys: readonly VersionKey[]): Promise<void>;
}

const MOST_KEPT = 20_000;
const MOST_BYTES_KEPT = 32 * 1024 * 1024;
/** About what a definition weighs beside its payload. */
const DEFINITION_BYTES = 1_000;

export function createHandoffDefinitions(database: Database): HandoffDefinitions {
  const kept = new LRUCache<string, Handoff>({
    max: MOST_KEPT,
    maxSize: MOST_BYTES_KEPT,
    sizeCalculation: (handoff) => DEFINITION_BYTES + (handoff.payload?.length ?? 0),
  });
  return {
    known: (key) => kept.get(versionKey(key)),
    load: async (keys) => {
      const missing = new Map(keys.map((key) => [versionKey(key), key]));
      for (const name of missing.keys()) if (kept.has(name)) missing.delete(name);
      if (missing.size === 0) return;
      const loaded = await database.run((db) => loadHandoffs(db, [...missing.values()]));
      for (const [name, handoff] of loaded) kept.set(name, handoff);
    },
  };
}
