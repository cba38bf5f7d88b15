import { sql } from 'drizzle-orm';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import type { Telling } from './message-payloads.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { tellingsOfEnds } from './message-order.ts';
import { type RecordedMessages, recordMessages } from './record-messages.ts';

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
 * Reminds notifiers of open episodes, and says when next; resolves incidents that a person's act ended, of which chats hear nothing. One
 * that is gone or disabled is not reminded any more. `locked`: notifiers whose rows other transactions have.
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
  const due = await lockDue(tx, mine);
  const rows = await rowsOf<{ alert_id: string; notifier_id: string; is_over: boolean }>(tx)(sql`-- remind
    WITH due AS MATERIALIZED (
      SELECT r.*, NOT EXISTS (SELECT FROM alerts a WHERE a.id = r.alert_id AND a.until IS NULL) AS is_over
      FROM unnest(${uuids(due.map(({ alertId }) => alertId))}, ${texts(due.map(({ notifierId }) => notifierId))},
        ${ints(due.map(secondsOf))}) AS r(alert_id, notifier_id, seconds)
    ), forgotten AS (
      DELETE FROM alert_tellings t USING due d
      WHERE t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id AND d.is_over
    ), again AS (
      UPDATE alert_tellings t SET remind_at = clock_timestamp() + make_interval(secs => d.seconds::float8)
      FROM due d WHERE t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id AND NOT d.is_over
    )
    SELECT alert_id, notifier_id, is_over FROM due`);
  const about = (isOver: boolean) =>
    [...free.values()].map((notifier) => {
      const own = rows.filter((row) => row.notifier_id === notifier.id && row.is_over === isOver);
      return { notifier, alertIds: own.map(({ alert_id }) => alert_id) };
    });
  const now = await databaseNow(tx);
  const { recovered, replaced } = await tellingsOfEnds(tx, about(true), now);
  const resolved = recovered.filter(({ notifier }) => notifier.channel === 'pagerduty');
  const reminded = about(false)
    .filter(({ notifier }) => notifier.remindSeconds !== null)
    .map((one): Telling => ({ ...one, event: 'reminder' }));
  const told = [...reminded, ...resolved].filter(({ alertIds }) => alertIds.length > 0);
  return { messages: await recordMessages(tx, [...told, ...replaced], { now, publicUrl }), locked };
}

/** A separate statement: what a transaction has ended of which a row was waited for is seen by the next one only. */
async function lockDue(tx: Transaction, reminders: readonly Reminder[]): Promise<Reminder[]> {
  const rows = await rowsOf<{ alert_id: string; notifier_id: string }>(tx)(sql`-- lockDue
    SELECT t.alert_id, t.notifier_id FROM alert_tellings t
    WHERE (t.alert_id, t.notifier_id) IN (SELECT * FROM ${pairsOf(reminders)}) AND t.remind_at <= (SELECT clock_timestamp())
    ORDER BY t.alert_id, t.notifier_id FOR UPDATE SKIP LOCKED`);
  return rows.map((row) => ({ alertId: row.alert_id, notifierId: row.notifier_id }));
}

/** After an edit that says anew whether and how often the notifier, whose row is locked, is reminded of what is open. */
export async function resetReminders(
  tx: Transaction,
  { id, enabled, remindSeconds }: Pick<Notifier, 'id' | 'enabled' | 'remindSeconds'>,
): Promise<void> {
  await tx.execute(sql`-- resetReminders
    UPDATE alert_tellings t SET remind_at = clock_timestamp() + make_interval(secs => ${enabled ? remindSeconds : null}::float8)
    FROM alerts a WHERE t.notifier_id = ${id} AND a.id = t.alert_id AND a.until IS NULL`);
}
