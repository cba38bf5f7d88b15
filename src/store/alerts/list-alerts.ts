import { type SQL, sql } from 'drizzle-orm';
import type { Alert } from '../../core/alerts/alert.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { ALERT_COLUMNS, type AlertRow, toAlert } from './alert-rows.ts';

interface AlertFilter {
  /** Only those that are open. */
  open: boolean;
  scheduleId?: string | undefined;
  /** The id of the last one of the page before. */
  after?: string | undefined;
  limit: number;
}

/** Episodes, those that broke last first. */
export async function listAlerts(
  db: Executor,
  { open, scheduleId, after, limit }: AlertFilter,
): Promise<Alert[]> {
  const conditions: SQL[] = [sql`true`];
  if (open) conditions.push(sql`until IS NULL`);
  if (scheduleId !== undefined) conditions.push(sql`schedule_id = ${scheduleId}`);
  if (after !== undefined) conditions.push(sql`id < ${after}::uuid`);
  const rows = await rowsOf<AlertRow>(db)(sql`-- listAlerts
    SELECT ${ALERT_COLUMNS} FROM alerts a WHERE ${sql.join(conditions, sql` AND `)} ORDER BY id DESC LIMIT ${limit}`);
  return rows.map(toAlert);
}
