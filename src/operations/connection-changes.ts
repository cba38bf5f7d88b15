/**
 * Guarantees: a connection that a schedule or an open run names stays; its version rises if something of it changes, and only then.
 * Transaction: one, under the lock of the connection's row.
 * If the process dies here: it is written or not. Attempts that begin after the commit use what is written.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Scope } from '../core/access/scope.ts';
import type { Connection, ConnectionFields } from '../core/connections/connection.ts';
import { resealConnection } from '../core/connections/connection-secrets.ts';
import { originOf } from '../core/http/template.ts';
import type { KeyRing } from '../core/secrets/key-ring.ts';
import type { Database } from '../postgres/database.ts';
import type { Transaction } from '../postgres/executor.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Auditor } from '../store/audit/record-audit.ts';
import { lockConnection } from '../store/connections/find-connections.ts';
import {
  changeLockedConnection,
  createConnection,
  deleteLockedConnection,
} from '../store/connections/write-connections.ts';
import { refuseWhileNamed } from './named-things.ts';

interface ConnectionChangeDeps {
  database: Database;
  events: EventBus;
  secrets: KeyRing;
  /** What the caller may be told of. */
  scope: Scope;
  auditor?: Auditor;
}

/** What a caller decides: with its secret values encrypted, or kept as they are stored. */
export type ConnectionContent = ConnectionFields & Pick<Connection, 'description'>;

/** `uid` is the connection's, or the one that it will get. */
type Decide = (current: Connection | null, uid: string) => ConnectionContent;

export interface PutConnection {
  before: Connection | null;
  connection: Connection;
  change: 'created' | 'updated' | 'unchanged';
  /** The changed fields of an update, as JSON pointers. */
  fields: string[];
}

/** Creates or replaces a connection. `decide` runs under its lock, and may throw to leave it as it is. */
export async function putConnection(
  { database, events, secrets, scope, auditor }: ConnectionChangeDeps,
  id: string,
  decide: Decide,
): Promise<PutConnection> {
  const put = await database.transaction(async (tx) => {
    const planned = await planPut(tx, { secrets, scope, id, decide });
    const { before, connection, change, fields } = planned;
    if (change === 'unchanged') return planned;
    await (before ? changeLockedConnection : createConnection)(tx, connection);
    const detail = { change, version: connection.version, ...(before && { fields }) };
    await auditor?.note(tx, { action: 'connection.put', subject: id, scheduleId: null, detail });
    return planned;
  });
  const { change, connection } = put;
  if (change !== 'unchanged')
    events.emit({ type: 'connectionWritten', connectionId: id, change, version: connection.version });
  return put;
}

/** What `putConnection` would make of it, or refuse; writes nothing. */
export async function tryToPutConnection(
  { database, secrets, scope }: Pick<ConnectionChangeDeps, 'database' | 'secrets' | 'scope'>,
  id: string,
  decide: Decide,
): Promise<PutConnection> {
  return database.transaction((tx) => planPut(tx, { secrets, scope, id, decide }));
}

interface Put extends Pick<ConnectionChangeDeps, 'secrets' | 'scope'> {
  id: string;
  decide: Decide;
}

/** Under the lock of the connection's row. @throws StillNamed, and the errors of `decide` */
async function planPut(tx: Transaction, { secrets, scope, id, decide }: Put): Promise<PutConnection> {
  const current = await lockConnection(tx, id, { toDelete: false });
  const uid = current?.uid ?? randomUUID();
  const content = decide(current, uid);
  const fields = current ? changedFields(current, content) : [];
  if (current && fields.length === 0)
    return { before: current, connection: current, change: 'unchanged', fields };
  const version = (current?.version ?? 0) + 1;
  const updatedAt = await databaseNow(tx);
  const isMoved = current !== null && originOf(current.url) !== originOf(content.url);
  if (isMoved) await refuseToMove(tx, id, scope);
  const placedAt = current === null || isMoved ? updatedAt : current.placedAt;
  const connection = resealConnection(secrets, {
    ...content,
    uid,
    id,
    version,
    edition: randomUUID(),
    updatedAt,
    placedAt,
  });
  return { before: current, connection, change: current ? 'updated' : 'created', fields };
}

/** False: there is none. @throws StillNamed, and the errors of `check` */
export async function deleteConnection(
  { database, events, scope, auditor }: Omit<ConnectionChangeDeps, 'secrets'>,
  id: string,
  check: (current: Connection) => void,
): Promise<boolean> {
  const version = await database.transaction(async (tx) => {
    const current = await lockConnection(tx, id, { toDelete: true });
    if (!current) return null;
    check(current);
    await refuseWhileNamed(tx, 'connections', { id, scope });
    await deleteLockedConnection(tx, id);
    await noteDeleted(tx, auditor, current);
    return current.version;
  });
  if (version === null) return false;
  events.emit({ type: 'connectionWritten', connectionId: id, change: 'deleted', version });
  return true;
}

/**
 * A target's own header values are bound to the connection, and would go where it goes. So it does not move while there
 * are some: locked as for a deletion, so that no call can name it with more of them meanwhile.
 */
async function refuseToMove(tx: Transaction, id: string, scope: Scope): Promise<void> {
  await lockConnection(tx, id, { toDelete: true });
  await refuseWhileNamed(tx, 'connections', { id, scope, which: 'withSecrets' });
}

async function noteDeleted(tx: Transaction, auditor: Auditor | undefined, { id, version }: Connection) {
  const detail = { version };
  await auditor?.note(tx, { action: 'connection.delete', subject: id, scheduleId: null, detail });
}

const FIELDS = ['description', 'url', 'headers', 'auth', 'tls'] as const;

/** As JSON pointers: of an object that stays one, its members. Names only: a value may be a secret. */
function changedFields(before: ConnectionContent, after: ConnectionContent): string[] {
  const isProven = isDeepStrictEqual(before.urlSeal, after.urlSeal);
  return FIELDS.flatMap((field) => {
    const [was, is]: unknown[] = [before[field], after[field]];
    if (isDeepStrictEqual(was, is) && (field !== 'url' || isProven)) return [];
    if (!isMembers(was) || !isMembers(is)) return [`/${field}`];
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return names
      .filter((name) => !isDeepStrictEqual(was[name], is[name]))
      .map((name) => `/${field}/${name.replaceAll('~', '~0')}`);
  });
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
