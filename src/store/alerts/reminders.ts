import { sql } from 'drizzle-orm';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { NO_MESSAGES, type RecordedMessages, recordMessages } from './record-messages.ts';

/** A notifier is to be reminded of an episode that is open. */
export interface Reminder {
  alertId: string;
  notifierId: string;
}

interface RemindersAsked {
  limit: number;
  /** These are left out, and all of these notifiers. */
  besides: readonly Reminder[];
  besideNotifiers: readonly string[];
}

/** Reminders that are due, the longest first; and how long until the next one is, null: there is none. */
export async function findReminders(
  db: Executor,
  { limit, besides, besideNotifiers }: RemindersAsked,
): Promise<{ due: Reminder[]; nextInMs: number | null }> {
  const rows = await rowsOf<{ alert_id: string; notifier_id: string; ms: number }>(db)(sql`-- findReminders
    SELECT alert_id, notifier_id, extract(epoch FROM remind_at - clock_timestamp())::float8 * 1000 AS ms FROM alert_tellings
    WHERE remind_at IS NOT NULL AND notifier_id <> ALL (${texts(besideNotifiers)})
      AND (alert_id, notifier_id) NOT IN (SELECT * FROM ${pairsOf(besides)})
    ORDER BY remind_at LIMIT ${limit}`);
  return {
    due: rows
      .filter(({ ms }) => ms <= 0)
      .map((row) => ({ alertId: row.alert_id, notifierId: row.notifier_id })),
    nextInMs: rows.find(({ ms }) => ms > 0)?.ms ?? null,
  };
}

function pairsOf(reminders: readonly Reminder[]) {
  return sql`unnest(${uuids(reminders.map(({ alertId }) => alertId))}, ${texts(reminders.map(({ notifierId }) => notifierId))})`;
}

/**
 * Reminds notifiers of open episodes, and says when next. One that is gone or disabled is not reminded any more. `locked`: notifiers
 * whose rows other transactions have.
 */
export async function remind(
  tx: Transaction,
  reminders: readonly Reminder[],
  publicUrl: string | null,
): Promise<{ messages: RecordedMessages; locked: ReadonlySet<string> }> {
  const { free, locked } = await lockNotifiersToTell(
    tx,
    reminders.map(({ notifierId }) => notifierId),
  );
  const mine = reminders.filter(({ notifierId }) => !locked.has(notifierId));
  const secondsOf = ({ notifierId }: Reminder) => free.get(notifierId)?.remindSeconds ?? null;
  const rows = await rowsOf<{ alert_id: string; notifier_id: string }>(tx)(sql`-- remind
    WITH due AS MATERIALIZED (
      SELECT t.alert_id, t.notifier_id, r.seconds
      FROM unnest(${uuids(mine.map(({ alertId }) => alertId))}, ${texts(mine.map(({ notifierId }) => notifierId))},
        ${ints(mine.map(secondsOf))}) AS r(alert_id, notifier_id, seconds)
      JOIN alert_tellings t ON t.alert_id = r.alert_id AND t.notifier_id = r.notifier_id
      WHERE t.remind_at <= (SELECT clock_timestamp()) ORDER BY t.alert_id, t.notifier_id FOR UPDATE OF t SKIP LOCKED
    )
    UPDATE alert_tellings t SET remind_at = clock_timestamp() + make_interval(secs => d.seconds::float8)
    FROM due d WHERE t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id RETURNING t.alert_id, t.notifier_id`);
  const told = Map.groupBy(rows, ({ notifier_id }) => notifier_id);
  const tellings = [...free.values()].flatMap((notifier) => {
    const alertIds = (told.get(notifier.id) ?? []).map(({ alert_id }) => alert_id);
    if (notifier.remindSeconds === null || alertIds.length === 0) return [];
    return [{ notifier, event: 'reminder' as const, alertIds }];
  });
  if (tellings.length === 0) return { messages: NO_MESSAGES, locked };
  return { messages: await recordMessages(tx, tellings, { now: await databaseNow(tx), publicUrl }), locked };
}
