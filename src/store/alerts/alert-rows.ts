import { type SQL, sql } from 'drizzle-orm';
import type { Scope } from '../../core/access/scope.ts';
import type { Alert } from '../../core/alerts/alert.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { namesSeen } from '../scopes/in-scope.ts';
import type { Instant } from '../../core/instant.ts';
import { uuids } from '../../postgres/sql/arrays.ts';

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

/** Uids of schedules to be looked at by now, the longest overdue first: they may have become late, or an episode of theirs is open. */
export async function findAlertLooks(
  db: Executor,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<string[]> {
  const due = sql`look_at IS NOT NULL AND look_at <= (SELECT clock_timestamp()) AND schedule_uid <> ALL (${uuids(besides)})
      ORDER BY look_at LIMIT ${limit}`;
  return onlyColumnOf<string>(db)(sql`-- findAlertLooks
    SELECT schedule_uid AS uid FROM ((SELECT schedule_uid, look_at FROM outcome_watches WHERE ${due})
      UNION ALL (SELECT schedule_uid, look_at FROM alerts WHERE ${due})) AS looks
    GROUP BY schedule_uid ORDER BY min(look_at) LIMIT ${limit}`);
}

/** Deletes what is older than the retention: episodes that are over, and messages. Answers whether there may be more. */
export async function forgetOldAlerts(tx: Transaction, before: Instant, limit: number): Promise<boolean> {
  const at: SQL = sql`${new Date(before).toISOString()}`;
  const alerts = await rowsOf(tx)(sql`-- forgetOldAlerts
    DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE until IS NOT NULL AND until < ${at} ORDER BY until LIMIT ${limit})
    RETURNING id`);
  const messages = await onlyColumnOf<string>(tx)(sql`-- forgetOldAlerts
    SELECT run_id FROM messages WHERE created_at < ${at} AND gathers_until IS NULL ORDER BY created_at LIMIT ${limit}`);
  const ids = uuids(messages);
  const named = sql`SELECT run_id, alert_id FROM message_alerts WHERE run_id = ANY (${ids}) LIMIT ${MOST_NAMED}`;
  const [gone] = await rowsOf<{ count: number }>(tx)(sql`-- forgetOldAlerts
    WITH gone AS (DELETE FROM message_alerts WHERE (run_id, alert_id) IN (${named}) RETURNING run_id)
    SELECT count(*)::int AS count FROM gone`);
  if (gone?.count === MOST_NAMED) return true;
  await tx.execute(sql`-- forgetOldAlerts
    DELETE FROM messages WHERE run_id = ANY (${ids})`);
  return alerts.length === limit || messages.length === limit;
}

/** A message may be about thousands of episodes: it goes when none of them is named any more. */
const MOST_NAMED = 10_000;
