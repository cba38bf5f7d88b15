import { type SQL, sql } from 'drizzle-orm';
import type { Instant } from '../../core/instant.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';

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
  const messages = await rowsOf<{ id: string }>(tx)(sql`-- forgetOldAlerts
    SELECT run_id AS id FROM messages WHERE created_at < ${at} AND gathers_until IS NULL ORDER BY created_at LIMIT ${limit}`);
  const ids = uuids(messages.map(({ id }) => id));
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
