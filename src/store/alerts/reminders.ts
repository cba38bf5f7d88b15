import { sql } from 'drizzle-orm';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { recordMessages } from './record-messages.ts';

/** Ids of notifiers that are to be reminded of an open episode by now; and how long until the next reminder, null: there is none. */
export async function findReminders(
  db: Executor,
): Promise<{ notifierIds: string[]; nextInMs: number | null }> {
  const rows = await rowsOf<{ notifier_id: string; ms: number }>(db)(sql`-- findReminders
    SELECT notifier_id, extract(epoch FROM remind_at - clock_timestamp())::float8 * 1000 AS ms FROM alert_tellings
    WHERE remind_at IS NOT NULL ORDER BY remind_at LIMIT 500`);
  const due = rows.filter(({ ms }) => ms <= 0);
  return {
    notifierIds: [...new Set(due.map(({ notifier_id }) => notifier_id))],
    nextInMs: rows.find(({ ms }) => ms > 0)?.ms ?? null,
  };
}

/**
 * Reminds a notifier of open episodes, and says when next. One that is gone or disabled is not reminded any more. Answers how many messages
 * were recorded; null: another transaction has its row.
 */
export async function remind(tx: Transaction, notifierId: string): Promise<number | null> {
  const { free, locked } = await lockNotifiersToTell(tx, [notifierId]);
  if (locked.has(notifierId)) return null;
  const notifier = free.get(notifierId);
  const seconds = notifier?.remindSeconds ?? null;
  const rows = await rowsOf<{ alert_id: string }>(tx)(sql`-- remind
    UPDATE alert_tellings SET remind_at = clock_timestamp() + make_interval(secs => ${seconds}::float8)
    WHERE (alert_id, notifier_id) IN (SELECT alert_id, notifier_id FROM alert_tellings
      WHERE notifier_id = ${notifierId} AND remind_at <= (SELECT clock_timestamp()) ORDER BY remind_at LIMIT 2000 FOR UPDATE SKIP LOCKED)
    RETURNING alert_id`);
  if (!notifier || seconds === null || rows.length === 0) return 0;
  const alertIds = rows.map(({ alert_id }) => alert_id);
  return recordMessages(tx, [{ notifier, event: 'reminder', alertIds }], await databaseNow(tx));
}
