import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Alert } from '../../core/alerts/alert.ts';
import type { Executor } from '../../postgres/executor.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';
import { namesSeen } from '../scopes/in-scope.ts';

interface AlertFilter {
  scope: Scope;
  /** Only those that are open. */
  open: boolean;
  scheduleId?: string | undefined;
  /** The id of the last one of the page before. */
  after?: string | undefined;
  limit: number;
}

/** So many episodes, the newest, are looked at for those that the caller sees. */
const WALKED = 10_000;

/** Episodes, those that broke last first. */
export async function listAlerts(db: Executor, filter: AlertFilter): Promise<Alert[]> {
  const { scope, scheduleId, limit } = filter;
  const seen = namesSeen(sql`a.schedule_id`, scope);
  const asked = conditionsOf(filter);
  // The one schedule is in the scope or not: there is nothing between its episodes.
  if (seen.length === 0 || scheduleId !== undefined) return alertsWhere(db, [...asked, ...seen], limit);
  const newest = sql`SELECT a.* FROM alerts a WHERE ${all(asked)} ORDER BY id DESC LIMIT ${WALKED}`;
  const found = await recordsOf<Alert>(db)(sql`-- listAlerts
    SELECT ${ALERT_COLUMNS} FROM (${newest}) AS a WHERE ${all(seen)} ORDER BY id DESC LIMIT ${limit}`);
  if (found.length === limit) return found;
  // It is a small scope, or an old page: all of its episodes are read, by its names, and nothing of the others.
  const own = sql`WITH own AS MATERIALIZED (SELECT id FROM alerts a WHERE ${all([...asked, ...seen])})
      SELECT id FROM own ORDER BY id DESC LIMIT ${limit}`;
  return alertsWhere(db, [sql`id = ANY (ARRAY(${own}))`], limit);
}

async function alertsWhere(db: Executor, conditions: readonly SQL[], limit: number): Promise<Alert[]> {
  return recordsOf<Alert>(db)(sql`-- alertsWhere
    SELECT ${ALERT_COLUMNS} FROM alerts a WHERE ${all(conditions)} ORDER BY id DESC LIMIT ${limit}`);
}

function conditionsOf({ open, scheduleId, after }: AlertFilter): SQL[] {
  const conditions: SQL[] = [sql`true`];
  if (open) conditions.push(sql`until IS NULL`);
  if (scheduleId !== undefined) conditions.push(sql`schedule_id = ${scheduleId}`);
  if (after !== undefined) conditions.push(sql`id < ${after}::uuid`);
  return conditions;
}

function all(conditions: readonly SQL[]): SQL {
  return sql.join([...conditions], sql` AND `);
}

/** Of a row `a` of `alerts`. */
export const ALERT_COLUMNS: SQL = sql`a.id, a.schedule_uid, a.schedule_id, a.kind, a.since, a.until, a.run_id, a.status, a.error,
  a.over_by`;
