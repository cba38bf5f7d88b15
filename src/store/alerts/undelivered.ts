import { sql } from 'drizzle-orm';
import type { MessageEvent } from '../../core/alerts/alert.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { tellsApart } from '../../core/alerts/texts/channels.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { FIRST_UUID, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { Effect } from '../effects/effect-rows.ts';
import { lockNotifiersToTell } from '../notifiers/rows.ts';
import type { Telling } from './message-payloads.ts';
import { isUntoldEnd, NO_MESSAGES, type RecordedMessages, recordMessages } from './record-messages.ts';

interface Row {
  run_id: string;
  notifier_id: string;
  event: MessageEvent;
  fallback: string;
}

interface PassedOn {
  /** Another transaction has the notifier's row. */
  unfinished: readonly Effect[];
  /** More is to be told than one transaction tells, and how far these are done. */
  begun: readonly Effect[];
  messages: RecordedMessages;
}

/** Messages that one transaction records for fallbacks that get one for each episode. */
const MOST_MESSAGES = 500;
/**
 * Records for each of these messages, which did not succeed or have been tried in vain for long, one for the fallback of its notifier, if
 * there is one; for PagerDuty, one for each of its episodes. From then on the fallback is told of their ends, too. What is over by now is
 * told so, and as an incident not at all. What a fallback could not deliver goes nowhere else.
 */
export async function passOnUndelivered(
  tx: Transaction,
  effects: readonly Effect[],
  publicUrl: string | null,
): Promise<PassedOn> {
  if (effects.length === 0) return { unfinished: [], begun: [], messages: NO_MESSAGES };
  const rows = await rowsOf<Row>(tx)(sql`-- passOnUndelivered
    SELECT m.run_id, m.notifier_id, m.event, n.fallback FROM messages m JOIN notifiers n ON n.id = m.notifier_id
    WHERE m.run_id = ANY (${uuids(effects.map(({ runId }) => runId))}) AND m.fallback_for IS NULL AND m.event <> 'test'
      AND n.fallback IS NOT NULL`);
  const { free, locked } = await lockNotifiersToTell(
    tx,
    rows.map(({ fallback }) => fallback),
  );
  const waiting = new Set(rows.filter(({ fallback }) => locked.has(fallback)).map(({ run_id }) => run_id));
  const told = await onlyOnce(
    tx,
    rows.flatMap((row) => {
      const notifier = free.get(row.fallback);
      const effect = effects.find(({ runId }) => runId === row.run_id);
      return notifier && effect ? [{ row, notifier, effect }] : [];
    }),
  );
  await noteTellings(tx, told);
  const { tellings, begun } = await tellingsOf(tx, told);
  const now = await databaseNow(tx);
  return {
    unfinished: effects.filter(({ runId }) => waiting.has(runId)),
    begun,
    messages: await recordMessages(tx, tellings, { now, publicUrl }),
  };
}

interface Passing {
  row: Row;
  notifier: Notifier;
  effect: Effect;
}

/** A message that is tried in vain for hours has an effect for each try. Under the locks of the fallbacks. */
async function onlyOnce(tx: Transaction, all: readonly Passing[]): Promise<Passing[]> {
  if (all.length === 0) return [];
  const first = new Set(
    await onlyColumnOf<string>(tx)(sql`-- onlyOnce
    UPDATE messages SET passed_on = true WHERE run_id = ANY (${uuids(all.map(({ row }) => row.run_id))}) AND NOT passed_on
    RETURNING run_id`),
  );
  return all.filter(({ row, effect }) => first.has(row.run_id) || effect.doneThrough !== null);
}

/** What is open stays so until this is committed. */
async function noteTellings(tx: Transaction, told: readonly Passing[]): Promise<void> {
  if (told.length === 0) return;
  await tx.execute(sql`-- noteTellings
    WITH open AS (
      SELECT a.id, p.fallback FROM unnest(${uuids(told.map(({ row }) => row.run_id))}, ${texts(told.map(({ row }) => row.fallback))})
        AS p(run_id, fallback) JOIN message_alerts m ON m.run_id = p.run_id JOIN alerts a ON a.id = m.alert_id
      WHERE a.until IS NULL ORDER BY a.id FOR SHARE OF a
    )
    INSERT INTO alert_tellings (alert_id, notifier_id) SELECT id, fallback FROM open ON CONFLICT DO NOTHING`);
}

async function tellingsOf(
  tx: Transaction,
  told: readonly Passing[],
): Promise<{ tellings: Telling[]; begun: Effect[] }> {
  const apart = told.filter(({ notifier }) => tellsApart(notifier));
  const share = Math.ceil(MOST_MESSAGES / Math.max(1, apart.length));
  const alerts = await nextAlerts(
    tx,
    apart.map(({ effect }) => effect),
    share,
  );
  const together = await openAndOver(
    tx,
    told.filter((one) => !apart.includes(one)),
  );
  const tellings = told.flatMap(({ row, notifier }): Telling[] => {
    const telling = { notifier, event: row.event, fallbackFor: row.notifier_id };
    const open = (alerts.get(row.run_id) ?? []).filter(({ is_open }) => is_open);
    if (tellsApart(notifier)) return [{ ...telling, alertIds: open.map(({ alert_id }) => alert_id) }];
    return (together.get(row.run_id) ?? []).map(({ is_open }) => ({
      ...{ ...telling, event: is_open ? row.event : 'recovered', alertIds: [] },
      ...{ copiedFrom: row.run_id, onlyOpen: is_open },
    }));
  });
  const begun = apart.flatMap(({ effect }) => {
    const of = alerts.get(effect.runId) ?? [];
    return of.length < share ? [] : [{ ...effect, doneThrough: of.at(-1)?.alert_id ?? null }];
  });
  return { tellings, begun };
}

/** By the run of the message: whether it is about episodes that are open, and about some that are over and the fallback was not told so. */
async function openAndOver(tx: Transaction, told: readonly Passing[]): Promise<Map<string, { is_open: boolean }[]>> {
  if (told.length === 0) return new Map();
  const rows = await rowsOf<{ run_id: string; is_open: boolean }>(tx)(sql`-- openAndOver
    SELECT DISTINCT p.run_id, e.until IS NULL AS is_open
    FROM unnest(${uuids(told.map(({ row }) => row.run_id))}, ${texts(told.map(({ row }) => row.fallback))}) AS p(run_id, notifier_id)
      JOIN message_alerts a ON a.run_id = p.run_id JOIN alerts e ON e.id = a.alert_id
    WHERE e.until IS NULL OR ${isUntoldEnd(sql`a.alert_id`, sql`p.notifier_id`)}`);
  return Map.groupBy(rows, ({ run_id }) => run_id);
}

interface NextAlert {
  run_id: string;
  alert_id: string;
  is_open: boolean;
}

/** By the run of the message: its next episodes, behind those that were told already. */
async function nextAlerts(
  tx: Transaction,
  effects: readonly Effect[],
  share: number,
): Promise<Map<string, NextAlert[]>> {
  if (effects.length === 0) return new Map();
  const rows = await rowsOf<NextAlert>(tx)(sql`-- nextAlerts
    SELECT e.run_id, a.alert_id, EXISTS (SELECT FROM alerts WHERE id = a.alert_id AND until IS NULL) AS is_open
    FROM unnest(${uuids(effects.map(({ runId }) => runId))}, ${uuids(effects.map(({ doneThrough }) => doneThrough ?? FIRST_UUID))})
      AS e(run_id, done_through)
      CROSS JOIN LATERAL (SELECT alert_id FROM message_alerts WHERE run_id = e.run_id AND alert_id > e.done_through
        ORDER BY alert_id LIMIT ${share}) AS a ORDER BY e.run_id, a.alert_id`);
  return Map.groupBy(rows, ({ run_id }) => run_id);
}
