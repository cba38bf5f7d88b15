import { sql } from 'drizzle-orm';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/**
 * Keeps calendars from being edited or deleted until the transaction ends. A separate statement before the one that reads or compares
 * what they say: in READ COMMITTED, a statement that has waited for a row lock still sees everything else as it was before it waited.
 */
export async function shareCalendars(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- shareCalendars
    SELECT FROM calendars WHERE id = ANY (${texts(ids)}) ORDER BY id FOR SHARE`);
}

/**
 * The same, and answers the versions. A calendar that is being edited at this moment is passed over, and missing in the
 * answer: no fire waits for an edit.
 */
export async function shareFreeCalendars(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; version: number }>(tx)(sql`-- shareFreeCalendars
    SELECT id, version FROM calendars WHERE id = ANY (${texts(ids)}) ORDER BY id FOR SHARE SKIP LOCKED`);
  return new Map(rows.map(({ id, version }) => [id, version]));
}
