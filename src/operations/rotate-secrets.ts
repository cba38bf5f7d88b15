/**
 * Guarantees: every secret value that can be decrypted is encrypted with the first key, in all versions and definitions of one-off runs;
 *   what they say stays the same.
 * Transaction: one for each fifty definitions, under their row locks, while instances run.
 * If the process dies here: what was done stays done; run again, it does the rest.
 */
import type { KeyRing } from '../core/secrets/key-ring.ts';
import { keyIdsIn, resealTarget } from '../core/secrets/target-secrets.ts';
import type { Database } from '../postgres/database.ts';
import { isLockedByOthers } from '../postgres/errors.ts';
import {
  type DefinitionKey,
  type StoredSecrets,
  pageOfSecrets,
  rewriteTargets,
} from '../store/secrets/stored-secrets.ts';

interface RotationDeps {
  database: Database;
  secrets: KeyRing;
  signal: AbortSignal;
}

export interface Rotation {
  /** Values that were encrypted anew. */
  rotated: number;
  /** How many values are under each key now. */
  byKey: ReadonlyMap<string, number>;
  /** Definitions that could not be read. */
  unreadable: readonly (DefinitionKey & { error: unknown })[];
}

/** Another walk finds values that were written or locked meanwhile; more walks are not made at once. */
const MAX_WALKS = 5;
const READ_AT_ONCE = 200;
const WRITTEN_AT_ONCE = 50;
/** A page may take long. */
const READ_LIMIT_MS = 30_000;

/** @throws Error if there is no key to encrypt with, or it is interrupted */
export async function rotateSecrets(deps: RotationDeps): Promise<Rotation> {
  if (deps.secrets.sealsWith === null)
    throw new Error('there is no key to encrypt with: set FIRELOCK_SECRET_KEYS');
  let rotated = 0;
  for (let walk = 1; ; walk += 1) {
    const found = await walkOnce(deps);
    rotated += found.rotated;
    if (walk === MAX_WALKS || (found.rotated === 0 && found.locked === 0)) return { ...found, rotated };
  }
}

interface Walked {
  rotated: number;
  byKey: Map<string, number>;
  unreadable: (DefinitionKey & { error: unknown })[];
  /** Definitions that another transaction had locked. */
  locked: number;
}

async function walkOnce(deps: RotationDeps): Promise<Walked> {
  const walked: Walked = { rotated: 0, byKey: new Map(), unreadable: [], locked: 0 };
  let after: DefinitionKey | null = null;
  do {
    deps.signal.throwIfAborted();
    const { found, last } = await readPage(deps, after);
    const toRotate = found.filter((stored) => count(deps.secrets, stored, walked));
    for (let first = 0; first < toRotate.length; first += WRITTEN_AT_ONCE) {
      deps.signal.throwIfAborted();
      await rotate(deps, toRotate.slice(first, first + WRITTEN_AT_ONCE), walked);
    }
    after = last;
  } while (after !== null);
  return walked;
}

function readPage({ database }: RotationDeps, after: DefinitionKey | null) {
  return database.run((db) => pageOfSecrets(db, { after, limit: READ_AT_ONCE }), READ_LIMIT_MS);
}

/** Counts the values that stay as they are; true: some value can be encrypted anew. */
function count(secrets: KeyRing, stored: StoredSecrets, walked: Walked): boolean {
  try {
    const after = keyIdsIn(resealTarget(secrets, stored.uid, stored.target));
    if (keyIdsIn(stored.target).some((id, index) => id !== after[index])) return true;
    add(walked.byKey, after);
  } catch (error) {
    walked.unreadable.push({ uid: stored.uid, version: stored.version, error });
  }
  return false;
}

async function rotate(
  { database, secrets }: RotationDeps,
  stored: readonly StoredSecrets[],
  walked: Walked,
): Promise<void> {
  const before: string[] = [];
  const after: string[] = [];
  try {
    await database.transaction((tx) => {
      // The transaction may be repeated.
      before.length = after.length = 0;
      return rewriteTargets(tx, stored, ({ uid, target }) => {
        const anew = resealTarget(secrets, uid, target);
        before.push(...keyIdsIn(target));
        after.push(...keyIdsIn(anew));
        return anew;
      });
    });
  } catch (error) {
    if (!isLockedByOthers(error)) throw error;
    walked.locked += stored.length;
    for (const { target } of stored) add(walked.byKey, keyIdsIn(target));
    return;
  }
  walked.rotated += after.filter((id, index) => id !== before[index]).length;
  add(walked.byKey, after);
}

function add(byKey: Map<string, number>, ids: readonly string[]): void {
  for (const id of ids) byKey.set(id, (byKey.get(id) ?? 0) + 1);
}
