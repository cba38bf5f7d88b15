/**
 * Guarantees: a connection does not move to another origin while targets that name it have secret values of their own. Another value of
 *   `maxRunning` counts from the commit on.
 * Transaction: that of named-changes.ts, under the lock of the row; admission locks that of a limit before it gives places.
 * If the process dies here: it is written or not. Attempts that begin after the commit use what is written, and any instance gives the
 *   places that are free then.
 */
import { randomUUID } from 'node:crypto';
import { resealConnection } from '../core/connections/connection-secrets.ts';
import type { Connection, ConnectionFields } from '../core/connections/connection.ts';
import { originOf } from '../core/schedules/schedule.ts';
import type { KeyRing } from '../core/secrets/key-ring.ts';
import { CONNECTION_ROWS } from '../store/connections/find-connections.ts';
import { lockNamed } from '../store/names/named-rows.ts';
import type { NamedKind } from './named-changes.ts';
import { refuseWhileNamed } from './references.ts';
import type { Wake } from '../runtime/loop/wake.ts';
import { type Limit, LIMIT_ROWS } from '../store/limits/limits.ts';

/** What a caller decides: with its secret values encrypted, or kept as they are stored. */
export type ConnectionContent = ConnectionFields & Pick<Connection, 'description'>;

export const CONNECTION_KIND: NamedKind<Connection, ConnectionContent, { secrets: KeyRing }> = {
  noun: 'connection',
  rows: CONNECTION_ROWS,
  /**
   * A target's own header values are bound to the connection, and would go where it goes. So it does not move while there are some: locked
   * as for a deletion, so that no call can name it with more of them meanwhile.
   */
  judge: async (tx, { id, scope, before, content }) => {
    if (!isMoved(before, content)) return [];
    await lockNamed(tx, CONNECTION_ROWS, { id, toDelete: true });
    await refuseWhileNamed(tx, 'connections', { id, scope, which: 'withSecrets' });
    return [];
  },
  // The proof of a URL is a part of it.
  fieldsOf: ({ description, url, urlSeal, headers, auth, tls }) => ({
    ...{ description, url: [url, urlSeal], headers, auth, tls },
  }),
  descends: ['/headers', '/auth', '/tls'],
  complete: (content, { before, ...as }, { secrets }) => {
    const placedAt = before === null || isMoved(before, content) ? as.updatedAt : before.placedAt;
    return resealConnection(secrets, { ...content, ...as, edition: randomUUID(), placedAt });
  },
};

function isMoved(before: Connection | null, content: ConnectionContent): boolean {
  return before !== null && originOf(before.url) !== originOf(content.url);
}

type LimitContent = Pick<Limit, 'description' | 'maxRunning'>;

/** A smaller `maxRunning` stops nothing that is under way: no run begins until enough have ended. */
export const LIMIT_KIND: NamedKind<Limit, LimitContent, { wake: Wake }> = {
  noun: 'limit',
  rows: LIMIT_ROWS,
  detail: ({ maxRunning }) => ({ maxRunning }),
  fieldsOf: ({ description, maxRunning }) => ({ description, maxRunning }),
  complete: ({ description, maxRunning }, { id, version, updatedAt, before }) => {
    const { running = 0, waiting = 0 } = before ?? {};
    return { id, description, maxRunning, running, waiting, version, updatedAt };
  },
  afterPut: ({ wake }, limit) => {
    wake.admission();
    return limit;
  },
};
