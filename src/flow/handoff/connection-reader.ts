import { LRUCache } from 'lru-cache';
import type { Connection } from '../../core/connections/connection.ts';
import { filesNamedIn, openConnection } from '../../core/connections/connection-secrets.ts';
import { type HandoffTarget, connectionOf } from '../../core/schedules/schedule.ts';
import { hasSecrets } from '../../core/schedules/target-secrets.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { batchCalls } from '../../runtime/loop/batch.ts';
import { type OwnShortage, ownShortageOf } from '../../runtime/own-shortage.ts';
import { reasonOf } from '../../runtime/reason.ts';
import type { Database } from '../../postgres/database.ts';
import { findChangedConnections } from '../../store/connections/find-connections.ts';
import { type SecretFiles, isSame, readAll } from '../../targets/login/secret-files.ts';

/** The connection of a target as it is now; `fault`: why nothing can be sent through it. */
type ReadConnection = { connection: Connection<string> | null } | { fault: string };

/** Null: it cannot be read now. */
export type ReadConnections = (target: HandoffTarget<unknown>) => Promise<ReadConnection | null>;

interface ConnectionReaderDeps {
  database: Database;
  secrets: KeyRing;
  files: SecretFiles;
  shortage: OwnShortage;
}

const MOST_KEPT = 1_000;
const MOST_AT_ONCE = 500;

/** A connection in the form in which it was used last. */
interface Opened {
  stored: Connection;
  files: ReadonlyMap<string, string>;
  connection: Connection<string>;
}

/**
 * Asks the database at each attempt whether the connection has changed, so that a change is in force from the next
 * attempt on; attempts that begin at the same moment ask together.
 */
export function createConnectionReader(deps: ConnectionReaderDeps): ReadConnections {
  const { database, secrets, shortage } = deps;
  const known = new LRUCache<string, Connection>({ max: MOST_KEPT });
  const opened = new LRUCache<string, Opened>({ max: MOST_KEPT });
  const storedOf = batchCalls<string, Connection | null>({
    maxWeight: MOST_AT_ONCE,
    work: (ids) => readChanged(database, known, ids),
  });
  return async (target) => {
    const id = connectionOf(target);
    if (id === null) return { connection: null };
    let stored: Connection | null;
    try {
      stored = await storedOf(id);
    } catch {
      return null;
    }
    if (stored === null) return { fault: `nothing was sent: the connection ${id} does not exist` };
    if (stored.urlSeal === null && secrets.sealsWith !== null && hasSecrets(target))
      return { fault: `nothing was sent: the connection ${id} was stored without a key: PUT it again` };
    try {
      return { connection: await inUse(deps, opened, stored) };
    } catch (error) {
      const lacked = ownShortageOf(error);
      if (lacked === null) return { fault: `nothing was sent: the connection ${id}: ${reasonOf(error)}` };
      shortage.met(lacked);
      return null;
    }
  };
}

/** In the order of the ids; null: there is none. */
async function readChanged(
  database: Database,
  known: LRUCache<string, Connection>,
  ids: readonly string[],
): Promise<(Connection | null)[]> {
  const before = new Map([...new Set(ids)].map((id) => [id, known.get(id) ?? null]));
  const asked = [...before].map(([id, one]) => ({
    id,
    uid: one?.uid ?? null,
    version: one?.version ?? null,
    edition: one?.edition ?? null,
  }));
  const { changed, missing } = await database.run((db) => findChangedConnections(db, asked));
  const now = new Map([...before, ...changed.map((one) => [one.id, one] as const)]);
  for (const one of changed) known.set(one.id, one);
  for (const id of missing) now.set(id, null);
  return ids.map((id) => now.get(id) ?? null);
}

/** The same object as before, as long as the connection and its files stay as they are. @throws Error that says why it cannot be used */
async function inUse(
  { secrets, files }: ConnectionReaderDeps,
  opened: LRUCache<string, Opened>,
  stored: Connection,
): Promise<Connection<string>> {
  const texts = await readAll(files, filesNamedIn(stored));
  const last = opened.get(stored.id);
  if (last?.stored === stored && isSame(last.files, texts)) return last.connection;
  const connection = openConnection(secrets, stored, (name) => texts.get(name) ?? '');
  opened.set(stored.id, { stored, files: texts, connection });
  return connection;
}
