import { LRUCache } from 'lru-cache';
import type { Handoff, HandoffTarget } from '../../core/schedules/schedule.ts';
import { type KeyRing, CannotOpen } from '../../core/secrets/key-ring.ts';
import type { ReadFile } from '../../core/secrets/sealed-values.ts';
import { filesNamedBy, openTarget, withoutSecrets } from '../../core/schedules/target-secrets.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Database } from '../../postgres/database.ts';
import {
  type Edition,
  type VersionKey,
  editionKey,
  loadEditions,
  loadHandoffs,
  versionKey,
} from '../../store/schedules/schedule-versions.ts';

/** The definition that an attempt uses. */
export interface SendableHandoff extends Handoff<string> {
  /** Why its secret values are missing, so that it cannot be sent; null: they are there. */
  lockedBecause: string | null;
  /** Values that stand in files, whose names stand for them in the target; null: there are none. */
  ofFiles: { names: readonly string[]; fill: (readFile: ReadFile) => HandoffTarget<string> } | null;
}

/**
 * The definitions of the versions that runs were planned under, with their secret values decrypted: here and nowhere before. What
 * an edition of a version says never changes, so what was read once may be kept.
 */
export interface HandoffDefinitions {
  known(key: Edition): SendableHandoff | undefined;
  /** Reads the definitions that are not known; answers all that exist, by editionKey(), including those too many to be kept. */
  load(keys: readonly Edition[]): Promise<ReadonlyMap<string, SendableHandoff>>;
  /** Those that the database has now, by versionKey(): for what seldom happens. */
  read(keys: readonly VersionKey[]): Promise<ReadonlyMap<string, SendableHandoff>>;
}

export const MAX_KEPT = 20_000;
const MAX_BYTES_KEPT = 32 * 1024 * 1024;
/** About what a definition weighs beside its texts, and a placeholder of its body once it is compiled. */
const DEFINITION_BYTES = 1_000;
const PLACEHOLDER_BYTES = 200;

export function createHandoffDefinitions(database: Database, secrets: KeyRing): HandoffDefinitions {
  const kept = new LRUCache<string, SendableHandoff>({
    max: MAX_KEPT,
    maxSize: MAX_BYTES_KEPT,
    sizeCalculation: weightOf,
  });
  return {
    known: (key) => kept.get(editionKey(key)),
    load: async (keys) => {
      const found = new Map<string, SendableHandoff>();
      const missing = new Map<string, Edition>();
      for (const key of keys) {
        const name = editionKey(key);
        const handoff = kept.get(name);
        if (handoff) found.set(name, handoff);
        else missing.set(name, key);
      }
      if (missing.size === 0) return found;
      const loaded = await database.run((db) => loadEditions(db, [...missing.values()]));
      for (const [name, { scheduleUid }] of missing) {
        const stored = loaded.get(name);
        if (!stored) continue;
        const handoff = opened(secrets, scheduleUid, stored);
        // It may be encrypted anew, with a key that this instance has.
        if (handoff.lockedBecause === null) kept.set(name, handoff);
        found.set(name, handoff);
      }
      return found;
    },
    read: async (keys) => {
      const stored = await database.run((db) => loadHandoffs(db, keys));
      const found = new Map<string, SendableHandoff>();
      for (const key of keys) {
        const handoff = stored.get(versionKey(key));
        if (handoff) found.set(versionKey(key), opened(secrets, key.scheduleUid, handoff));
      }
      return found;
    },
  };
}

function weightOf({ payload, target }: SendableHandoff): number {
  const text = JSON.stringify(target);
  const placeholders = text.split('{{').length - 1;
  return DEFINITION_BYTES + (payload?.length ?? 0) + text.length + PLACEHOLDER_BYTES * placeholders;
}

/** One definition that cannot be opened keeps no other from being sent. */
function opened(secrets: KeyRing, uid: string, stored: Handoff): SendableHandoff {
  const { target } = stored;
  try {
    const names = filesNamedBy(target);
    const fill = (readFile: ReadFile) => openTarget(secrets, uid, target, readFile);
    const ofFiles = names.length === 0 ? null : { names, fill };
    return { ...stored, target: openTarget(secrets, uid, target), lockedBecause: null, ofFiles };
  } catch (error) {
    const why = error instanceof CannotOpen ? error.message : reasonOf(error);
    const lockedBecause = `nothing was sent: ${why}`;
    return { ...stored, target: withoutSecrets(target), lockedBecause, ofFiles: null };
  }
}
