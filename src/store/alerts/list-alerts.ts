import { type SQL, sql } from 'drizzle-orm';
import type { Alert } from '../../core/alerts/alert.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

interface AlertFilter {
  /** Only those that are open. */
  open: boolean;
  scheduleId?: string | undefined;
  /** The id of the last one of the page before. */
  after?: string | undefined;
  limit: number;
}

interface Row {
  id: string;
  schedule_uid: string;
  schedule_id: string;
  kind: Alert['kind'];
  since: InstantText;
  until: InstantText | null;
  run_id: string | null;
  status: Alert['status'];
  error: string | null;
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
  const rows = await rowsOf<Row>(db)(sql`-- listAlerts
    SELECT id, schedule_uid, schedule_id, kind, since, until, run_id, status, error FROM alerts
    WHERE ${sql.join(conditions, sql` AND `)} ORDER BY id DESC LIMIT ${limit}`);
  return rows.map((row) => ({
    id: row.id,
    scheduleUid: row.schedule_uid,
    scheduleId: row.schedule_id,
    kind: row.kind,
    since: toInstant(row.since),
    until: toInstantOrNull(row.until),
    runId: row.run_id,
    status: row.status,
    error: row.error,
  }));
}
