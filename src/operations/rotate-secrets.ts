/**
 * Guarantees: every secret value that can be decrypted is encrypted with the first key, in all versions, definitions of one-off runs,
 *   connections and keys of observed schedules; what they say stays the same.
 * Transaction: one for each fifty definitions or connections, under their row locks, while instances run.
 * If the process dies here: what was done stays done; run again, it does the rest.
 */
import type { Connection } from '../core/connections/connection.ts';
import { keyIdsOfConnection, resealConnection } from '../core/connections/connection-secrets.ts';
import type { KeyRing } from '../core/secrets/key-ring.ts';
import { keyIdsOfPingKey, resealPingKey } from '../core/secrets/sealed-values.ts';
import { keyIdsIn, resealTarget } from '../core/schedules/target-secrets.ts';
import type { Database } from '../postgres/database.ts';
import { isLockedByOthers } from '../postgres/errors.ts';
import {
  type DefinitionKey,
  type PageAt,
  type SecretPage,
  type SecretRows,
  type StoredPingKey,
  type StoredSecrets,
  CONNECTION_SECRETS,
  DEFINITION_SECRETS,
  PING_KEY_SECRETS,
} from '../store/secrets/secret-rows.ts';

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
  /** What could not be read. */
  unreadable: readonly Unreadable[];
}

interface Unreadable {
  /** For a reader: `version 2 of …`, `connection …`. */
  what: string;
  error: unknown;
}

interface Shelf<Key, Row extends Key> extends SecretRows<Key, Row> {
  reseal(ring: KeyRing, row: Row): Row;
  keyIds(row: Row): string[];
  what(row: Row): string;
}

const DEFINITIONS: Shelf<DefinitionKey, StoredSecrets> = {
  ...DEFINITION_SECRETS,
  reseal: (ring, row) => ({ ...row, target: resealTarget(ring, row.uid, row.target) }),
  keyIds: ({ target }) => keyIdsIn(target),
  what: ({ uid, version }) => `version ${version} of ${uid}`,
};
const CONNECTIONS: Shelf<Connection, Connection> = {
  ...CONNECTION_SECRETS,
  ...{ reseal: resealConnection, keyIds: keyIdsOfConnection, what: ({ id }) => `connection ${id}` },
};
const PING_KEYS: Shelf<StoredPingKey, StoredPingKey> = {
  ...PING_KEY_SECRETS,
  ...{ reseal: resealPingKey, keyIds: keyIdsOfPingKey, what: ({ uid }) => `the pingKey of ${uid}` },
};

/** Another walk finds values that were written or locked meanwhile; more walks are not made at once. */
const MAX_WALKS = 5;
const READ_AT_ONCE = 200;
const WRITTEN_AT_ONCE = 50;
/** A page may take long. */
const READ_LIMIT_MS = 30_000;

/** @throws Error if there is no key to encrypt with, or it is interrupted */
export async function rotateSecrets(deps: RotationDeps): Promise<Rotation> {
  if (deps.secrets.sealsWith === null) throw new Error('there is no key to encrypt with: set FIRELOCK_SECRET_KEYS');
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
  unreadable: Unreadable[];
  /** Rows that another transaction had locked. */
  locked: number;
}

async function walkOnce(deps: RotationDeps): Promise<Walked> {
  const walked: Walked = { rotated: 0, byKey: new Map(), unreadable: [], locked: 0 };
  await walkAlong(deps, DEFINITIONS, walked);
  await walkAlong(deps, CONNECTIONS, walked);
  await walkAlong(deps, PING_KEYS, walked);
  return walked;
}

async function walkAlong<Key, Row extends Key>(
  deps: RotationDeps,
  shelf: Shelf<Key, Row>,
  walked: Walked,
): Promise<void> {
  let after: Key | null = null;
  do {
    deps.signal.throwIfAborted();
    const at: PageAt<Key> = { after, limit: READ_AT_ONCE };
    const page = await deps.database.run<SecretPage<Key, Row>>((db) => shelf.page(db, at), READ_LIMIT_MS);
    const toRotate = page.found.filter((row) => count(deps.secrets, shelf, row, walked));
    for (let first = 0; first < toRotate.length; first += WRITTEN_AT_ONCE) {
      deps.signal.throwIfAborted();
      await rotate(deps, shelf, toRotate.slice(first, first + WRITTEN_AT_ONCE), walked);
    }
    after = page.last;
  } while (after !== null);
}

/** Counts the values that stay as they are; true: some value can be encrypted anew. */
function count<Key, Row extends Key>(secrets: KeyRing, shelf: Shelf<Key, Row>, row: Row, walked: Walked): boolean {
  try {
    const after = shelf.keyIds(shelf.reseal(secrets, row));
    if (shelf.keyIds(row).some((id, index) => id !== after[index])) return true;
    add(walked.byKey, after);
  } catch (error) {
    walked.unreadable.push({ what: shelf.what(row), error });
  }
  return false;
}

async function rotate<Key, Row extends Key>(
  { database, secrets }: RotationDeps,
  shelf: Shelf<Key, Row>,
  rows: readonly Row[],
  walked: Walked,
): Promise<void> {
  const before: string[] = [];
  const after: string[] = [];
  try {
    await database.transaction((tx) => {
      // The transaction may be repeated.
      before.length = after.length = 0;
      return shelf.rewrite(tx, rows, (stored) => {
        const anew = shelf.reseal(secrets, stored);
        before.push(...shelf.keyIds(stored));
        after.push(...shelf.keyIds(anew));
        return anew;
      });
    });
  } catch (error) {
    if (!isLockedByOthers(error)) throw error;
    walked.locked += rows.length;
    for (const row of rows) add(walked.byKey, shelf.keyIds(row));
    return;
  }
  walked.rotated += after.filter((id, index) => id !== before[index]).length;
  add(walked.byKey, after);
}

function add(byKey: Map<string, number>, ids: readonly string[]): void {
  for (const id of ids) byKey.set(id, (byKey.get(id) ?? 0) + 1);
}
