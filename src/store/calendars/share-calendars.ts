import { sql } from 'drizzle-orm';
import { texts } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { calendarEdition } from './calendar-histories.ts';

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
 * The same, and answers their editions (`calendarEdition`). A calendar that is being edited at this moment is passed over, and missing
 * in the answer: no fire waits for an edit.
 */
export async function shareFreeCalendars(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; version: number; edition: string | null }>(
    tx,
  )(sql`-- shareFreeCalendars
    SELECT c.id, c.version, v.edition FROM calendars c JOIN calendar_versions v ON v.calendar_id = c.id AND v.version = c.version
    WHERE c.id = ANY (${texts(ids)}) ORDER BY c.id FOR SHARE OF c SKIP LOCKED`);
  return new Map(rows.map((row) => [row.id, calendarEdition(row)]));
}
