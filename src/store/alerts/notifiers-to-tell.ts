import { sql } from 'drizzle-orm';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiers } from '../notifiers/rows.ts';

interface NotifiersToTell {
  /** Those that are enabled, by id. */
  free: ReadonlyMap<string, Notifier>;
  /** Other transactions have these. */
  locked: ReadonlySet<string>;
}

/**
 * Locks the rows of these notifiers. Under this lock it is decided which message tells of an episode, and when a message is closed. One
 * that is gone or disabled is in neither answer.
 */
export async function lockNotifiersToTell(tx: Transaction, ids: readonly string[]): Promise<NotifiersToTell> {
  const found = await lockNotifiers(tx, ids, true);
  const mine = new Set(found.map(({ id }) => id));
  const others = [...new Set(ids)].filter((id) => !mine.has(id));
  const there =
    others.length === 0
      ? []
      : await rowsOf<{ id: string }>(tx)(sql`-- lockNotifiersToTell
    SELECT id FROM notifiers WHERE id = ANY (${texts(others)}) AND enabled`);
  return {
    free: new Map(found.filter(({ enabled }) => enabled).map((one) => [one.id, one])),
    locked: new Set(there.map(({ id }) => id)),
  };
}
