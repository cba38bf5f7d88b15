import { sql } from 'drizzle-orm';
import type { Notifier } from '../../core/alerts/notifier.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowBytes } from '../../postgres/sql/page-room.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { NamedRows } from '../names/find-named.ts';
import { NOTIFIER_COLUMNS, type NotifierRow, toNotifier } from './rows.ts';

/** A notifier, and what the messages of its version are handed to. */
export interface StoredNotifier extends Notifier {
  target: HandoffTarget;
}

export const NOTIFIER_ROWS: NamedRows<StoredNotifier> = {
  table: 'notifiers',
  whole: (page) => sql`SELECT ${NOTIFIER_COLUMNS}, v.definition -> 'target' AS target,
      ${rowBytes({ documents: [sql`v.definition`] })} AS row_bytes
    FROM (${page}) AS n JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version`,
  toThing: (row: NotifierRow & Pick<StoredNotifier, 'target'>) => ({
    ...toNotifier(row),
    target: row.target,
  }),
};

/** From now on until this transaction ends, no other one changes which notifiers name which: a circle may be ruled out. */
export async function lockFallbacks(tx: Transaction): Promise<void> {
  await tx.execute(sql`-- lockFallbacks
    SELECT pg_advisory_xact_lock(hashtext('firelock notifiers ' || current_schema()))`);
}

/** By the id of each notifier that has one, its fallback. */
export async function readFallbacks(tx: Transaction): Promise<Map<string, string>> {
  const rows = await rowsOf<{ id: string; fallback: string }>(tx)(sql`-- readFallbacks
    SELECT id, fallback FROM notifiers WHERE fallback IS NOT NULL`);
  return new Map(rows.map(({ id, fallback }) => [id, fallback]));
}
