import { type SQL, sql } from 'drizzle-orm';
import type { Alert } from '../../core/alerts/alert.ts';
import { type InstantText, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** ALERT_COLUMNS of an episode. */
export interface AlertRow extends Pick<Alert, 'id' | 'kind' | 'status' | 'error'> {
  schedule_uid: string;
  schedule_id: string;
  since: InstantText;
  until: InstantText | null;
  over_by: string | null;
  run_id: string | null;
}

/** Of a row `a` of `alerts`. */
export const ALERT_COLUMNS: SQL = sql`a.id, a.schedule_uid, a.schedule_id, a.kind, a.since, a.until, a.run_id, a.status, a.error,
  a.over_by`;

export function toAlert({ id, kind, status, error, ...row }: AlertRow): Alert {
  return {
    ...{ id, kind, status, error },
    scheduleUid: row.schedule_uid,
    scheduleId: row.schedule_id,
    since: toInstant(row.since),
    until: toInstantOrNull(row.until),
    runId: row.run_id,
    overBy: row.over_by,
  };
}
