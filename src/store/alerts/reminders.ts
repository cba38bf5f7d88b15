import { type SQL, sql } from 'drizzle-orm';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { tellsApart } from '../../core/alerts/texts/channels.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell } from '../notifiers/rows.ts';
import { HOLD_MS } from './tell-notifiers.ts';
import { endsHeldByOthers, tellingsOfChanges } from './message-order.ts';
import type { Telling } from './message-payloads.ts';
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
  const rows = await recordsOf<Reminder & { ms: number }>(db)(sql`-- findReminders
    SELECT alert_id, notifier_id, extract(epoch FROM remind_at - clock_timestamp())::float8 * 1000 AS ms FROM alert_tellings
    WHERE remind_at IS NOT NULL AND notifier_id <> ALL (${texts(besideNotifiers)})
      AND (alert_id, notifier_id) NOT IN (SELECT * FROM ${pairsOf(besides)})
    ORDER BY remind_at LIMIT ${limit}`);
  return {
    due: rows.filter(({ ms }) => ms <= 0),
    nextInMs: rows.find(({ ms }) => ms > 0)?.ms ?? null,
  };
}

function pairsOf(reminders: readonly Reminder[]) {
  return sql`unnest(${uuids(reminders.map(({ alertId }) => alertId))}, ${texts(reminders.map(({ notifierId }) => notifierId))})`;
}

/**
 * Reminds notifiers of open episodes, and says when next; tells them how those stand that opened again a while ago; resolves incidents that
 * a person's act ended, of which chats hear nothing. One that is gone or disabled is not reminded any more. `locked`: notifiers of which
 * other transactions have the row, or that of a message.
 */
export async function remind(
  tx: Transaction,
  reminders: readonly Reminder[],
  publicUrl: string | null,
): Promise<{ messages: RecordedMessages; locked: ReadonlySet<string> }> {
  const { free, locked, mine } = await lockForReminders(tx, reminders);
  const secondsOf = ({ notifierId }: Reminder) => free.get(notifierId)?.remindSeconds ?? null;
  const due = (await lockDue(tx, mine)).map((one) => ({
    ...one,
    seconds: secondsOf(one),
    after: free.get(one.notifierId)?.afterFailures ?? 1,
  }));
  const at = { now: await databaseNow(tx), publicUrl };
  const rows = await noteDue(tx, due, at.now);
  const about = (notifier: Notifier, what: What) =>
    rows.flatMap((row) => (row.notifier_id === notifier.id && row.what === what ? [row.alert_id] : []));
  const all = [...free.values()];
  const reminded = all
    .filter(({ remindSeconds }) => remindSeconds !== null)
    .map((one): Telling => ({ notifier: one, event: 'reminder', alertIds: about(one, 'reminder') }));
  const ended = all.map((one) => ({ notifier: one, opened: [], ended: about(one, 'endedByPerson') }));
  const resolved = (await tellingsOfChanges(tx, ended, at)).filter(
    ({ event, notifier }) => event !== 'recovered' || tellsApart(notifier),
  );
  const changed = all.map((one) => ({
    ...{ notifier: one, opened: about(one, 'opened'), ended: about(one, 'recovered') },
  }));
  const told = reminded.filter(({ alertIds }) => alertIds.length > 0);
  const tellings = [...told, ...resolved, ...(await tellingsOfChanges(tx, changed, at))];
  return { messages: await recordMessages(tx, tellings, at), locked };
}

/** Without those that wait for what another transaction has. */
async function lockForReminders(tx: Transaction, reminders: readonly Reminder[]) {
  const { free, locked } = await lockNotifiersToTell(
    tx,
    reminders.map(({ notifierId }) => notifierId),
  );
  const unlocked = reminders.filter(({ notifierId }) => !locked.has(notifierId));
  const held = await endsHeldByOthers(
    tx,
    unlocked.map(({ alertId }) => alertId),
  );
  const waiting = unlocked.filter(({ alertId }) => held.has(alertId));
  return {
    free,
    locked: new Set([...locked, ...waiting.map(({ notifierId }) => notifierId)]),
    mine: unlocked.filter((one) => !waiting.includes(one)),
  };
}

/** What a notifier is to hear of an episode now; `known`: it has heard how that stands. */
type What = 'reminder' | 'endedByPerson' | 'opened' | 'recovered' | 'known';

/** Decides what is to be told of these, whose rows are locked, and notes it. */
async function noteDue(
  tx: Transaction,
  due: readonly (Reminder & { seconds: number | null; after: number })[],
  now: Instant,
): Promise<{ alert_id: string; notifier_id: string; what: What }[]> {
  if (due.length === 0) return [];
  const [at, hold] = [sql`${isoInstant(now)}::timestamptz`, sql`make_interval(secs => ${HOLD_MS / 1000}::float8)`];
  return rowsOf<{ alert_id: string; notifier_id: string; what: What }>(tx)(sql`-- noteDue
    WITH due AS MATERIALIZED (
      SELECT d.*, make_interval(secs => d.seconds::float8) AS rest, t.held_until, a.until,
        a.id IS NULL AS is_gone, CASE WHEN a.id IS NULL THEN 'known'
        WHEN a.until IS NOT NULL THEN
          CASE WHEN t.told_over THEN 'known' WHEN t.held_until IS NULL OR t.remind_at < t.held_until THEN 'endedByPerson' ELSE 'recovered' END
        WHEN t.told_over THEN CASE WHEN a.kind = 'failed' AND a.failures < d.after_failures THEN 'known' ELSE 'opened' END
        WHEN t.held_until IS NULL OR ${at} >= greatest(t.held_until, t.held_until - ${hold} + make_interval(secs => d.seconds::float8))
          AND d.seconds IS NOT NULL THEN 'reminder' ELSE 'known' END AS what
      FROM unnest(${uuids(due.map(({ alertId }) => alertId))}, ${texts(due.map(({ notifierId }) => notifierId))},
        ${ints(due.map(({ seconds }) => seconds))}, ${ints(due.map(({ after }) => after))})
        AS d(alert_id, notifier_id, seconds, after_failures)
        JOIN alert_tellings t ON t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id LEFT JOIN alerts a ON a.id = d.alert_id
    ), forgotten AS (
      DELETE FROM alert_tellings t USING due d WHERE t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id AND ${isPast(at, hold)}
    ), noted AS (
      UPDATE alert_tellings t SET told_over = CASE WHEN d.what IN ('recovered', 'endedByPerson') THEN true WHEN d.what = 'opened' THEN false ELSE t.told_over END,
        held_until = CASE WHEN d.what <> 'known' AND (t.held_until IS NOT NULL OR t.told_over) THEN ${at} + ${hold} ELSE t.held_until END,
        remind_at = CASE WHEN d.what IN ('recovered', 'endedByPerson') THEN ${at} + ${hold} WHEN d.what <> 'known' THEN ${at} + d.rest
          WHEN d.until IS NOT NULL THEN d.until + ${hold}
          WHEN t.told_over THEN ${at} + ${hold}
          WHEN d.rest IS NOT NULL THEN greatest(t.held_until, t.held_until - ${hold} + d.rest) END
      FROM due d WHERE t.alert_id = d.alert_id AND t.notifier_id = d.notifier_id AND NOT ${isPast(at, hold)}
    )
    SELECT alert_id, notifier_id, what FROM due`);
}

/** The episode of a row `d` is over, the notifier heard so, and it cannot open again. */
function isPast(at: SQL, hold: SQL): SQL {
  return sql`(d.what = 'endedByPerson' AND d.held_until IS NULL OR d.what = 'known' AND (d.is_gone OR d.held_until IS NULL OR coalesce(d.until + ${hold} <= ${at}, false)))`;
}

/** A separate statement: what a transaction has ended of which a row was waited for is seen by the next one only. */
async function lockDue(tx: Transaction, reminders: readonly Reminder[]): Promise<Reminder[]> {
  return recordsOf<Reminder>(tx)(sql`-- lockDue
    SELECT t.alert_id, t.notifier_id FROM alert_tellings t
    WHERE (t.alert_id, t.notifier_id) IN (SELECT * FROM ${pairsOf(reminders)}) AND t.remind_at <= (SELECT clock_timestamp())
    ORDER BY t.alert_id, t.notifier_id FOR UPDATE SKIP LOCKED`);
}

/** After an edit that says anew whether and how often the notifier, whose row is locked, is reminded of what is open. */
export async function resetReminders(
  tx: Transaction,
  { id, enabled, remindSeconds }: Pick<Notifier, 'id' | 'enabled' | 'remindSeconds'>,
): Promise<void> {
  await tx.execute(sql`-- resetReminders
    UPDATE alert_tellings t SET remind_at = clock_timestamp() + make_interval(secs => ${enabled ? remindSeconds : null}::float8)
    FROM alerts a WHERE t.notifier_id = ${id} AND a.id = t.alert_id AND a.until IS NULL AND NOT t.told_over`);
}
