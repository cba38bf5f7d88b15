/**
 * Guarantees: a limit that a schedule or an open run names stays; another value of `maxRunning` counts from the commit on.
 * Transaction: one, under the lock of the limit's row, which admission locks before it gives places.
 * If the process dies here: it is written or not; any instance gives the places that are free now.
 */
import type { Scope } from '../core/access/scope.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Wake } from '../runtime/loop/wake.ts';
import type { Database } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import type { Auditor } from '../store/audit/record-audit.ts';
import {
  type Limit,
  type LimitState,
  deleteLimit,
  findLimit,
  lockLimitToDelete,
  writeLimit,
} from '../store/limits/limit-rows.ts';
import { refuseWhileNamed } from './named-things.ts';

interface LimitChangeDeps {
  database: Database;
  events: EventBus;
  wake: Wake;
  /** What the caller may be told of. */
  scope: Scope;
  auditor?: Auditor;
}

/** Creates or replaces a limit. A smaller `maxRunning` stops nothing that is under way: no run begins until enough have ended. */
export async function putLimit(
  { database, events, wake, scope, auditor }: LimitChangeDeps,
  given: Omit<Limit, 'updatedAt'>,
): Promise<{ limit: LimitState; created: boolean }> {
  const written = await database.transaction(async (tx) => {
    const { created, changed } = await writeLimit(tx, { ...given, updatedAt: await databaseNow(tx) });
    const change: 'created' | 'updated' | null = changed ? (created ? 'created' : 'updated') : null;
    const detail = { change, maxRunning: given.maxRunning };
    if (change !== null)
      await auditor?.note(tx, { action: 'limit.put', subject: given.id, scheduleId: null, detail });
    const limit = await findLimit(tx, { id: given.id, scope });
    if (!limit) throw new Error(`limit ${given.id} was written and is not there`);
    return { limit, created, change };
  });
  const { limit, created, change } = written;
  if (change !== null)
    events.emit({ type: 'limitWritten', limitId: given.id, change, maxRunning: limit.maxRunning });
  wake.admission();
  return { limit, created };
}

/**
 * False: there is none.
 * @throws StillNamed
 */
export async function removeLimit(
  { database, events, scope, auditor }: LimitChangeDeps,
  id: string,
): Promise<boolean> {
  const wasThere = await database.transaction(async (tx) => {
    if (!(await lockLimitToDelete(tx, id))) return false;
    await refuseWhileNamed(tx, 'limits', { id, scope });
    await deleteLimit(tx, id);
    await auditor?.note(tx, { action: 'limit.delete', subject: id, scheduleId: null, detail: {} });
    return true;
  });
  if (wasThere) events.emit({ type: 'limitWritten', limitId: id, change: 'deleted', maxRunning: null });
  return wasThere;
}
